"""What a worker needs to hold a session: the last snapshot, and the finished operations after it."""

from uuid import uuid4

import msgspec

from contract.operation import OperationKind
from store import keys
from store.claims import Claim
from store.context import Context
from store.objects import Objects


class Replayed(msgspec.Struct, frozen=True):
    """A finished operation that changed the adapter: its request is run again, its result stays as it was."""

    kind: OperationKind
    seq: int
    request: bytes


class Snapshots:
    def __init__(self, context: Context, objects: Objects) -> None:
        self._context = context
        self._objects = objects

    def is_checkpoint(self, session_id: str) -> bool:
        """Whether the session's snapshot still is the checkpoint that it goes on from."""
        return bool(self._context.redis.hexists(keys.session(session_id), "snapshot_of"))

    def load(self, session_id: str) -> tuple[bytes | None, list[Replayed]]:
        """The last snapshot (None before the first) and what came after it, in order."""
        redis = self._context.redis
        path: bytes | None = redis.hget(keys.session(session_id), "snapshot")
        snapshot = self._objects.get(path.decode()) if path else None
        replayed = []
        for operation_id in redis.zrange(keys.replay(session_id), 0, -1):
            kind, seq, stored = redis.hmget(keys.operation(operation_id.decode()), "kind", "seq", "request")
            request = self._context.payloads.get(stored)
            replayed.append(Replayed(OperationKind(kind.decode()), int(seq), request))
        return snapshot, replayed

    def save(self, claim: Claim, worker_id: str, snapshot: bytes) -> bool:
        """Keeps the adapter as the claimed operation left it, and drops the requests that this covers.

        The object is whole before the session refers to it. False when the session is another worker's by now.
        """
        path = f"snapshots/{claim.session_id}/{claim.seq}-{uuid4()}"
        self._objects.put(path, snapshot)
        covered = self._context.scripts.run("cover", claim.session_id, worker_id, claim.epoch, path, claim.seq)
        if not covered:
            self._objects.delete(path)
        return bool(covered)
