"""The store's records, read from the server's data at one moment."""

from collections import defaultdict
from typing import NamedTuple

from store import keys
from tests.simulator.commands import Data

Fields = dict[str, bytes]
ENDED = (b"COMPLETED", b"FAILED")


class Records(NamedTuple):
    """Hashes by id. `queues` are the ids that have not ended, by session and seq, as the hashes say."""

    data: Data
    sessions: dict[str, Fields]
    operations: dict[str, Fields]

    @property
    def queues(self) -> dict[str, list[str]]:
        queues: defaultdict[str, list[str]] = defaultdict(list)
        for id, operation in sorted(self.operations.items(), key=lambda item: int(item[1]["seq"])):
            if operation["state"] not in ENDED:
                queues[operation["session"].decode()].append(id)
        return queues

    def members(self, key: str) -> list[str]:
        """Of a set, or of a sorted one in its order."""
        held = self.data.get(key.encode(), object)
        return [id.decode() for id in getattr(held, "ordered", held) or ()]


def read_records(data: Data) -> Records:
    sessions: dict[str, Fields] = {}
    operations: dict[str, Fields] = {}
    for key in data.names():
        kind, _, id = key.decode().removeprefix(keys.PREFIX).partition(":")
        if ":" in id or kind not in ("session", "operation"):
            continue
        fields = {name.decode(): value for name, value in data.get(key, dict).items()}
        (sessions if kind == "session" else operations)[id] = fields
    return Records(data, sessions, operations)
