"""The store's records, read from the server's data at one moment."""

from collections import defaultdict
from typing import NamedTuple

from store import keys
from tests.simulator.commands import Data

Fields = dict[bytes, bytes]
ENDED = (b"COMPLETED", b"FAILED")


class Records(NamedTuple):
    """Hashes by id. `queues` are the ids that have not ended, by session and seq, as the hashes say."""

    data: Data
    sessions: dict[str, Fields]
    operations: dict[str, Fields]

    @property
    def queues(self) -> dict[str, list[str]]:
        queues: defaultdict[str, list[str]] = defaultdict(list)
        for id, operation in sorted(self.operations.items(), key=lambda item: int(item[1][b"seq"])):
            if operation[b"state"] not in ENDED:
                queues[operation[b"session"].decode()].append(id)
        return queues

    def members(self, key: str) -> list[str]:
        """Of a set, or of a sorted one in its order."""
        held = self.data.get(key.encode(), object)
        return [id.decode() for id in getattr(held, "ordered", held) or ()]


def read_records(data: Data) -> Records:
    return Records(data, _hashes(data, keys.session("")), _hashes(data, keys.operation("")))


def _hashes(data: Data, family: str) -> dict[str, Fields]:
    prefix = family.encode()
    size = len(prefix)
    found = [key for key in data.names() if key.startswith(prefix) and b":" not in key[size:]]
    return {key[size:].decode(): data.get(key, dict) for key in found}
