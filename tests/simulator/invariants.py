"""What every list, set and counter must hold at any moment, counted anew from the records."""

from collections import Counter
from collections.abc import Iterable, Iterator

from domain.operation import OperationKind
from domain.session import SessionStatus
from settings import Settings
from store import keys
from tests.simulator.commands import Data
from tests.simulator.records import ENDED, Records, read_records

ENDS = (b"STOPPED", b"ERROR", b"EXPIRED")


def violated(data: Data, settings: Settings) -> str:
    """The first that is not what it must be; empty when all are."""
    records = read_records(data)
    checks = (_queues, _turns, _claims, _due, _sessions, _workers, _results, _checkpoints, _counters)
    return next((wrong for check in checks for wrong in check(records, settings)), "")


def _differ(name: str, held: Iterable[str], counted: Iterable[str]) -> Iterator[str]:
    held, counted = list(held), list(counted)
    if sorted(held) != sorted(counted):
        yield f"{name} holds {held}, and the records say {counted}"


def _queues(records: Records, _: Settings) -> Iterator[str]:
    queues, waiting = records.queues, []
    for id in records.sessions:
        if records.members(keys.session_queue(id)) != queues.get(id, []):
            held = records.members(keys.session_queue(id))
            yield f"the queue of {id} is {held}, and the records say {queues.get(id, [])}"
    for operation_id in (operation_id for queue in queues.values() for operation_id in queue):
        if OperationKind(records.operations[operation_id][b"kind"].decode()).is_public:
            waiting.append(operation_id)
            if b"request" not in records.operations[operation_id]:
                yield f"the request of {operation_id} is gone before its end"
    yield from _differ("what waits of the owner", records.members(keys.owner_waiting("anonymous")), waiting)


def _turns(records: Records, settings: Settings) -> Iterator[str]:
    """At the head of a queue one runs, or some samples do, and nothing behind them."""
    for session_id, queue in records.queues.items():
        states = [records.operations[id][b"state"] for id in queue]
        kinds = [records.operations[id][b"kind"] for id in queue]
        samples = next((place for place, kind in enumerate(kinds) if kind != b"sample"), len(kinds))
        most = min(samples, settings.max_running_samples) if samples else 1
        if states[0] == b"WAITING":
            yield f"nothing of {session_id} has its turn: {states}"
        if any(state != b"WAITING" for state in states[most:]):
            yield f"too many of {session_id} have their turn: {list(zip(kinds, states, strict=True))}"


def _claims(records: Records, _: Settings) -> Iterator[str]:
    """What runs was claimed by the worker that holds its session, and what has run was ended under its last claim.
    A claim is named after the coroutine that made it, and that after its worker."""
    for id, operation in records.operations.items():
        claim = operation.get(b"claim", b"").decode()
        if operation[b"state"] == b"RUNNING":
            holder = records.sessions[operation[b"session"].decode()][b"worker"].decode()
            if claim.partition(".")[0] != holder.rpartition("-")[2]:
                yield f"{id} runs under {claim}, and its session is with {holder}"
        if operation.get(b"finished_by", b"").decode() not in ("", claim):
            yield f"{id} was claimed last by {claim}, and ended by {operation[b'finished_by'].decode()}"


def _due(records: Records, _: Settings) -> Iterator[str]:
    ready = [id for id, operation in records.operations.items() if operation[b"state"] == b"READY"]
    yield from _differ("what is due", records.members(keys.DUE), ready)


def _sessions(records: Records, _: Settings) -> Iterator[str]:
    sessions, owner = records.sessions, "anonymous"
    for status in SessionStatus:
        of_status = [id for id, session in sessions.items() if session[b"status"] == status.encode()]
        yield from _differ(f"sessions {status}", records.members(keys.sessions_with(status)), of_status)
        listed = keys.owner_sessions_with(owner, status)
        yield from _differ(f"the owner's sessions {status}", records.members(listed), of_status)
    yield from _differ("the owner's sessions", records.members(keys.owner_sessions(owner)), sessions)
    ended = [id for id, session in sessions.items() if session[b"status"] in ENDS]
    yield from _differ("ended sessions", records.members(keys.SESSIONS_ENDED), ended)


def _workers(records: Records, _: Settings) -> Iterator[str]:
    """A session has one owner, which is known."""
    holders = {session[b"worker"].decode() for session in records.sessions.values()}
    for worker in {*records.members(keys.WORKERS), *holders}:
        held = [
            id
            for id, session in records.sessions.items()
            if session[b"worker"].decode() == worker and session[b"status"] not in ENDS
        ]
        yield from _differ(f"worker {worker}", records.members(keys.worker_sessions(worker)), held)
        if held and worker not in records.members(keys.WORKERS):
            yield f"nobody would notice that {worker}, which holds {held}, is gone"


def _results(records: Records, _: Settings) -> Iterator[str]:
    for session_id in records.sessions:
        kept = [
            id
            for id, operation in records.operations.items()
            if operation[b"session"] == session_id.encode()
            and operation[b"state"] in ENDED
            and OperationKind(operation[b"kind"].decode()).is_public
        ]
        yield from _differ(f"ended operations of {session_id}", records.members(keys.results(session_id)), kept)
        for id in records.members(keys.replay(session_id)):
            if b"request" not in records.operations[id]:
                yield f"the request of {id} is gone before a snapshot covers it"


def _checkpoints(records: Records, _: Settings) -> Iterator[str]:
    users = Counter(
        session[b"snapshot_of"].decode() for session in records.sessions.values() if b"snapshot_of" in session
    )
    for checkpoint, number in users.items():
        if len(records.members(keys.checkpoint_sessions(checkpoint))) != number:
            yield f"checkpoint {checkpoint} is not known to be in use"
        if records.data.get(keys.checkpoint(checkpoint).encode(), dict) is None:
            yield f"checkpoint {checkpoint} is gone while it is in use"


def _counters(records: Records, _: Settings) -> Iterator[str]:
    """What was accepted and has not been counted as ended is what has not ended."""
    counted: Counter[str] = Counter()
    for field, value in (records.data.get(keys.COUNTERS.encode(), dict) or {}).items():
        name, _, rest = field.decode().partition(":")
        if name in ("accepted", "ended"):
            counted[rest.partition(":")[0]] += int(value) if name == "accepted" else -int(value)
    ids = (id for queue in records.queues.values() for id in queue)
    unended = Counter(records.operations[id][b"kind"].decode() for id in ids)
    if +counted != unended:
        yield f"the counters say that these have not ended: {dict(+counted)}, and the records {dict(unended)}"
