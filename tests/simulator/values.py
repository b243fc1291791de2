"""Whether what clients were told is what a run of the same operations in order gives, each of them once."""

from collections.abc import Iterator

from domain.codec import decode
from domain.operation import ErrorCode, OperationFailedError, OperationKind
from tests.simulator.client import Asked, Client
from tests.simulator.faults import Fault
from tests.simulator.numbers import Numbers
from tests.simulator.records import Fields, Records
from tests.simulator.requests import RESULTS
from tests.simulator.world import World

K = OperationKind
SLOW = {Fault.STUCK_JOB, Fault.STALLED_AFTER, Fault.STALLED_BEFORE}


def wrong_values(world: World, records: Records) -> Iterator[str]:
    """A sentence for each thing that is not as it must be."""
    saved: dict[str, Numbers] = {}
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
        self, world: World, records: Records, client: Client, session_id: str, saved: dict[str, Numbers]
    ) -> None:
        self._world, self._records, self._client, self._id, self._saved = world, records, client, session_id, saved
        self._struck = set(world.faults.struck.values())
        self._asked = {asked.id: asked for asked in client.asked if asked.session_id == session_id}

    def wrong(self) -> Iterator[str]:
        rows = sorted(self._ours(), key=lambda row: int(row[1]["seq"]))
        if len({row["seq"] for _, row in rows}) < len(rows):
            yield f"operations of {self._id} share a place"
        numbers = self._beginning()
        for id, row in rows:
            kind = K(row["kind"].decode())
            if not kind.is_public:
                yield from self._wrong_end(id, row)
            elif id in self._asked:
                yield from self._wrong(self._asked[id], row, numbers)
            elif not self._world.faults.lost_tail:
                yield f"nobody was told of {id}"
            else:
                return
        yield from self._order([id for id, _ in rows])

    def _ours(self) -> list[tuple[str, Fields]]:
        return [(id, row) for id, row in self._records.operations.items() if row["session"] == self._id.encode()]

    def _beginning(self) -> Numbers:
        origin = self._client.origins.get(self._id)
        numbers = self._saved[origin].copy() if origin else Numbers(self._client.sessions.index(self._id) + 1)
        if self._client.publishes and numbers.published < 0:
            numbers.published = numbers.weights
        return numbers

    def _order(self, ids: list[str]) -> Iterator[str]:
        wanted = [id for id in self._asked if id in ids]
        if [id for id in ids if id in self._asked] != wanted:
            yield f"the operations of {self._id} are in another order than they were asked for: {ids}"
        lost = [id for id, asked in self._asked.items() if id not in ids and not asked.is_forgotten]
        if lost and not self._world.faults.lost_tail:
            yield f"accepted, and not there: {lost}"

    def _wrong_end(self, id: str, row: Fields) -> Iterator[str]:
        """The two ends of a session may fail like any other operation, but not for want of a client's mistake."""
        if row["state"] == b"FAILED" and not self._may_fail(row, ErrorCode(row["error_code"].decode())):
            yield f"{id} ({row['kind'].decode()}) failed: {row['error_message'].decode()}"

    def _wrong(self, asked: Asked, row: Fields, numbers: Numbers) -> Iterator[str]:
        told = asked.ended
        if told is None and not asked.is_forgotten:
            yield f"{asked.id} has not ended"
        if row["state"] == b"FAILED":
            yield from self._wrong_failure(asked, row, numbers)
            return
        outcome = _outcome(numbers, asked)
        if asked.kind is K.TRAINING_CHECKPOINT:
            self._saved[asked.id] = numbers.without_gradients()
        if "result" in row and self._stored(asked.kind, row["result"]) != outcome:
            yield f"{asked.id} gave {self._stored(asked.kind, row['result'])}, and in order it gives {outcome}"
        if told and asked.value != outcome and not self._world.faults.lost_tail:
            yield f"the client was told {asked.value} of {asked.id}, which in order gives {outcome}"

    def _wrong_failure(self, asked: Asked, row: Fields, numbers: Numbers) -> Iterator[str]:
        code = ErrorCode(row["error_code"].decode())
        if code not in (ErrorCode.INVALID_INPUT, ErrorCode.NON_FINITE):
            # It has changed nothing.
            if not self._may_fail(row, code, asked):
                yield f"{asked.id} failed: {code}, {row['error_message'].decode()}"
            return
        outcome = _outcome(numbers, asked)
        if outcome is not code:
            yield f"{asked.id} failed with {code}, and in order it gives {outcome}"

    def _stored(self, kind: OperationKind, stored: bytes) -> int:
        into, number = RESULTS[kind]
        data = stored[1:] if stored.startswith(b"=") else self._world.objects[stored[1:].decode()]
        return number(decode(data, into))

    def _may_fail(self, row: Fields, code: ErrorCode, asked: Asked | None = None) -> bool:
        is_stopped = self._id in self._client.stopped or self._records.sessions[self._id]["status"] == b"ERROR"
        match code:
            case ErrorCode.CANCELLED:
                return asked is not None and asked.is_cancelled
            case ErrorCode.SESSION_NOT_ACTIVE:
                return is_stopped
            case ErrorCode.TIMEOUT:
                return bool(SLOW & self._struck)
            case ErrorCode.INTERNAL_ERROR:
                attempts = int(row.get("attempts", b"0"))
                is_deadly = self._world.plan.settings.most_attempts <= min(attempts, self._world.deaths)
                return is_deadly or Fault.OBJECTS_AWAY in self._struck
        return False


def _never_ran(row: Fields) -> bool:
    return row.get("error_code", b"INVALID_INPUT") not in (b"INVALID_INPUT", b"NON_FINITE")


def _outcome(numbers: Numbers, asked: Asked) -> int | ErrorCode:
    """What it gives, and what it makes of the numbers."""
    number = asked.step.number
    try:
        match asked.kind:
            case K.FORWARD_BACKWARD:
                return numbers.forward_backward(number)
            case K.OPTIM_STEP:
                return numbers.optim_step(number)
            case K.SAMPLE:
                return numbers.sample(number)
            case K.WEIGHTS_SYNC:
                return numbers.weights_sync()
    except OperationFailedError as failed:
        return failed.error.code
    return numbers.step
