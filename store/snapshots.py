"""What a worker needs to hold a session: the last snapshot, and the finished operations after it."""

from typing import Any

import msgspec

from domain.operation import OperationKind
from store.claims import Claim
from store.context import Context
from store.errors import ObjectMissingError, ObjectsAwayError
from store.objects import Objects
from store.writes import Writes


class Replayed(msgspec.Struct, frozen=True):
    """A finished operation that changed the adapter: its request is run again, its result stays as it was."""

    kind: OperationKind
    seq: int
    request: bytes


class Kept(msgspec.Struct, frozen=True):
    """The last snapshot (None before the first), whether that is the checkpoint which the session goes on from, what
    came after it, in order, and the last change that this makes up to (see `Claim.last_change`)."""

    snapshot: bytes | None
    is_checkpoint: bool
    replayed: list[Replayed]
    last_change: str


class Snapshots:
    def __init__(self, context: Context, objects: Objects, writes: Writes) -> None:
        self._context = context
        self._objects = objects
        self._writes = writes

    def load(self, session_id: str) -> Kept:
        """A snapshot and what follows that very one, though a later one may be written meanwhile.

        Raises ObjectsAwayError, and ObjectMissingError for an object that is lost.
        """
        while True:
            path, is_checkpoint, last_change, *rows = self._read(session_id)
            try:
                snapshot = self._objects.get_kept(path.decode()) if path else None
                replayed = [self._replayed(*row) for row in rows]
                return Kept(snapshot, bool(is_checkpoint), replayed, last_change.decode())
            except (ObjectsAwayError, ObjectMissingError):
                if self._read(session_id)[0] == path:
                    raise

    def _read(self, session_id: str) -> list[Any]:
        reply: list[Any] = self._context.scripts.run("load_snapshot", session=session_id)
        return reply

    def _replayed(self, kind: bytes, seq: bytes, stored: bytes) -> Replayed:
        return Replayed(OperationKind(kind.decode()), int(seq), self._context.payloads.get(stored))

    def save(self, claim: Claim, snapshot: bytes) -> bool:
        """Keeps the adapter as the claimed operation left it, and drops the requests that this covers.

        The object is whole before the session refers to it. May be repeated until it has got through. False when
        the session has ended, a later snapshot is kept, or the operation has not ended under this claim.
        """
        path = f"snapshots/{claim.session_id}/{claim.seq}-{claim.fence}"
        self._writes.put(path, snapshot)
        covered = self._context.scripts.run(
            "cover",
            session=claim.session_id,
            snapshot=path,
            seq=claim.seq,
            id=claim.operation_id,
            claim=claim.fence,
        )
        if not covered:
            self._writes.discard(path)
        return bool(covered)
