"""Whether what clients were told is what a run of the same operations in order gives, each of them once."""

from collections.abc import Iterator

from domain.codec import decode
from domain.operation import ErrorCode, OperationFailedError, OperationKind
from tests.simulator.adapter import Adapter
from tests.simulator.client import Client, Issued
from tests.simulator.faults import Fault
from tests.simulator.records import Fields, Records
from tests.simulator.requests import RESULTS
from tests.simulator.world import World

K = OperationKind
SLOW = {Fault.STUCK_JOB, Fault.STALLED_AFTER, Fault.STALLED_BEFORE}


def wrong_results(world: World, records: Records) -> Iterator[str]:
    """A sentence for each thing that is not as it must be."""
    saved: dict[str, Adapter] = {}
    for client in world.clients:
        for session_id in client.sessions:
            origin = client.origins.get(session_id)
            if session_id in records.sessions and (not origin or origin in saved):
                yield from _Session(world, records, client, session_id, saved).wrong()
            elif not world.faults.lost_tail:
                yield f"session {session_id} is gone"
    told = {session_id for client in world.clients for session_id in client.sessions}
    if records.sessions.keys() - told and not world.faults.lost_tail:
        yield f"nobody was told of {records.sessions.keys() - told}"


class _Session:
    def __init__(
        self, world: World, records: Records, client: Client, session_id: str, saved: dict[str, Adapter]
    ) -> None:
        self._world, self._records, self._client, self._id, self._saved = world, records, client, session_id, saved
        self._injected = set(world.faults.injected.values())
        self._issued = {issued.id: issued for issued in client.issued if issued.session_id == session_id}

    def wrong(self) -> Iterator[str]:
        rows = sorted(self._ours(), key=lambda row: int(row[1][b"seq"]))
        if len({row[b"seq"] for _, row in rows}) < len(rows):
            yield f"operations of {self._id} share a place"
        adapter = self._beginning()
        for id, row in rows:
            kind = K(row[b"kind"].decode())
            if not kind.is_public:
                yield from self._wrong_end(id, row)
            elif id in self._issued:
                yield from self._wrong(self._issued[id], row, adapter)
            elif not self._world.faults.lost_tail:
                yield f"nobody was told of {id}"
            else:
                return
        yield from self._order([id for id, _ in rows])

    def _ours(self) -> list[tuple[str, Fields]]:
        return [(id, row) for id, row in self._records.operations.items() if row[b"session"] == self._id.encode()]

    def _beginning(self) -> Adapter:
        origin = self._client.origins.get(self._id)
        adapter = self._saved[origin].copy() if origin else Adapter(self._client.sessions.index(self._id) + 1)
        if self._client.publishes and adapter.published < 0:
            adapter.published = adapter.weights
        return adapter

    def _order(self, ids: list[str]) -> Iterator[str]:
        wanted = [id for id in self._issued if id in ids]
        if [id for id in ids if id in self._issued] != wanted:
            yield f"the operations of {self._id} are in another order than they were asked for: {ids}"
        lost = [id for id, issued in self._issued.items() if id not in ids and not issued.is_forgotten]
        if lost and not self._world.faults.lost_tail:
            yield f"accepted, and not there: {lost}"

    def _wrong_end(self, id: str, row: Fields) -> Iterator[str]:
        """The two ends of a session may fail like any other operation, but not for want of a client's mistake."""
        if row[b"state"] == b"FAILED" and not self._may_fail(row, ErrorCode(row[b"error_code"].decode())):
            yield f"{id} ({row[b'kind'].decode()}) failed: {row[b'error_message'].decode()}"

    def _wrong(self, issued: Issued, row: Fields, adapter: Adapter) -> Iterator[str]:
        told = issued.ended
        if told is None and not issued.is_forgotten:
            yield f"{issued.id} has not ended"
        if row[b"state"] == b"FAILED":
            yield from self._wrong_failure(issued, row, adapter)
            return
        outcome = _outcome(adapter, issued)
        if issued.kind is K.TRAINING_CHECKPOINT:
            self._saved[issued.id] = adapter.without_gradients()
        if b"result" in row and self._stored(issued.kind, row[b"result"]) != outcome:
            yield f"{issued.id} gave {self._stored(issued.kind, row[b'result'])}, and in order it gives {outcome}"
        if told and issued.value != outcome and not self._world.faults.lost_tail:
            yield f"the client was told {issued.value} of {issued.id}, which in order gives {outcome}"

    def _wrong_failure(self, issued: Issued, row: Fields, adapter: Adapter) -> Iterator[str]:
        code = ErrorCode(row[b"error_code"].decode())
        if code not in (ErrorCode.INVALID_INPUT, ErrorCode.NON_FINITE):
            # It has changed nothing.
            if not self._may_fail(row, code, issued):
                yield f"{issued.id} failed: {code}, {row[b'error_message'].decode()}"
            return
        outcome = _outcome(adapter, issued)
        if outcome is not code:
            yield f"{issued.id} failed with {code}, and in order it gives {outcome}"

    def _stored(self, kind: OperationKind, stored: bytes) -> int:
        into, number = RESULTS[kind]
        data = stored[1:] if stored.startswith(b"=") else self._world.objects[stored[1:].decode()]
        return number(decode(data, into))

    def _may_fail(self, row: Fields, code: ErrorCode, issued: Issued | None = None) -> bool:
        is_stopped = self._id in self._client.stopped or self._records.sessions[self._id][b"status"] == b"ERROR"
        match code:
            case ErrorCode.CANCELLED:
                return issued is not None and issued.is_cancelled
            case ErrorCode.SESSION_NOT_ACTIVE:
                return is_stopped
            case ErrorCode.TIMEOUT:
                return bool(SLOW & self._injected) or self._world.plan.engine_pace > 1
            case ErrorCode.INTERNAL_ERROR:
                attempts = int(row.get(b"attempts", b"0"))
                is_deadly = self._world.plan.settings.most_attempts <= min(attempts, self._world.deaths)
                return is_deadly or Fault.OBJECTS_AWAY in self._injected
        return False


def _never_ran(row: Fields) -> bool:
    return row.get(b"error_code", b"INVALID_INPUT") not in (b"INVALID_INPUT", b"NON_FINITE")


def _outcome(adapter: Adapter, issued: Issued) -> int | ErrorCode:
    """What it gives, and what it makes of the adapter."""
    number = issued.step.number
    try:
        match issued.kind:
            case K.FORWARD_BACKWARD:
                return adapter.forward_backward(number)
            case K.OPTIM_STEP:
                return adapter.optim_step(number)
            case K.SAMPLE:
                return adapter.sample(number)
            case K.WEIGHTS_SYNC:
                return adapter.weights_sync()
    except OperationFailedError as failed:
        return failed.error.code
    return adapter.step
