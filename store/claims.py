"""Operations as workers see them: claimed once, finished once, published again when overdue."""

from typing import TypeVar

import msgspec

from domain.checkpoint import Checkpoint
from domain.codec import decode, encode
from domain.kinds import KINDS
from domain.metrics import NO_METRICS, OperationMetrics
from domain.operation import OperationError, OperationKind
from domain.optim_step import OptimStepResult
from domain.session import SessionSpec
from domain.weights_sync import WeightsSyncResult
from store import keys
from store.context import Context
from store.records import OPERATION_FIELDS, operation_from
from store.transitions import Move, OperationState

T = TypeVar("T", bound=msgspec.Struct)


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """The right to run one operation. `fence` is refused once anything has moved the operation on.

    `epoch` counts the workers that have held the session: an adapter of another epoch is not this one.
    `last_change` is the fence of the operation that changed the adapter last before this one; empty when none has.
    `timeout_seconds` is how long it may run; None, for ever.
    """

    operation_id: str
    session_id: str
    kind: OperationKind
    seq: int
    epoch: int
    last_change: str
    spec: SessionSpec
    stored: bytes
    fence: str
    timeout_seconds: float | None


class SuspectError(Exception):
    """The operation may have killed its workers: it is to be run alone."""


class Claims:
    def __init__(self, context: Context) -> None:
        self._context = context

    def claim(self, operation_id: str, worker_id: str, fence: str, *, beside_others: bool = False) -> Claim | None:
        """The operation for the worker that holds its session; None when it is not to be run
        (claimed or ended already, unknown, or another worker's).

        `fence` is new for each attempt to run it; claiming again with the same one is safe.
        Raises SuspectError for one that may not run `beside_others`, since its workers have died half as often as they
        may.
        """
        suspect_from = max(1, self._context.settings.most_attempts // 2) if beside_others else None
        reply = self._context.scripts.run(
            "claim", id=operation_id, worker=worker_id, claim=fence, suspect_from=suspect_from
        )
        if reply == b"suspect":
            raise SuspectError
        if not reply:
            return None
        session_id, kind, seq, stored, spec, epoch, last_change, timeout = reply
        kind = OperationKind(kind.decode())
        return Claim(
            operation_id=operation_id,
            session_id=session_id.decode(),
            kind=kind,
            seq=int(seq),
            epoch=int(epoch),
            last_change=last_change.decode(),
            spec=decode(spec, SessionSpec),
            stored=stored,
            fence=fence,
            timeout_seconds=float(timeout) if timeout else self._context.settings.time_limits.of(kind),
        )

    def request(self, claim: Claim, into: type[T]) -> T:
        """What the claimed operation asks for. Raises ObjectsAwayError."""
        return decode(self._context.payloads.get(claim.stored), into)

    def is_held(self, claim: Claim) -> bool:
        """Whether nothing has moved the operation on since it was claimed."""
        held: list[bytes | None] = self._context.redis.hmget(keys.operation(claim.operation_id), "state", "claim")
        return held == [OperationState.RUNNING.encode(), claim.fence.encode()]

    def store_result(self, claim: Claim, result: msgspec.Struct | None) -> bytes:
        """Stores what the operation answers, for it to be finished with. May be repeated. Raises ObjectsAwayError."""
        if result is None:
            return b""
        return self._context.payloads.put(f"results/{claim.operation_id}/{claim.fence}", encode(result))

    def finish(
        self,
        claim: Claim,
        outcome: msgspec.Struct | OperationError | None,
        metrics: OperationMetrics = NO_METRICS,
        stored: bytes | None = None,
    ) -> bool:
        """Ends the operation with its result or error and dispatches what this releases. What it measured is counted
        and joins its session's series when it COMPLETED. `stored` is what `store_result` made of a result; without it,
        that is done here.

        May be repeated until it has got through. False when the claim is no longer good: then nothing has changed.
        """
        error = outcome if isinstance(outcome, OperationError) else None
        if error:
            stored = b""
        elif stored is None:
            stored = self.store_result(claim, outcome)
        made = outcome if isinstance(outcome, Checkpoint) else None
        settings = self._context.settings
        reply = self._context.scripts.run(
            "finish",
            id=claim.operation_id,
            claim=claim.fence,
            ending=Move.FAIL if error else Move.COMPLETE,
            result=stored,
            code=error and error.code.value,
            message=error and error.message,
            step=outcome.step if isinstance(outcome, OptimStepResult) else None,
            published=outcome.step if isinstance(outcome, WeightsSyncResult) else None,
            replay=KINDS[claim.kind].changed_the_adapter(error),
            most_samples=settings.max_running_samples,
            checkpoint=made and encode(made),
            checkpoint_kind=made and made.kind.value,
            folder=made and made.folder,
            sampled=metrics.sampled,
            trained=metrics.trained,
            values=msgspec.json.encode(metrics.values) if metrics.values else None,
            most_points=settings.curve_points,
            requests_kept=self._requests_kept(claim),
        )
        if reply[0] == b"refused":
            self._context.payloads.discard(stored)
            if made:
                self._context.redis.sadd(keys.GARBAGE, made.folder)
            return False
        self._context.publish(reply[1])
        return True

    def _requests_kept(self, claim: Claim) -> int | None:
        """Large requests, which lie in object storage, are not kept to be looked at."""
        most = self._context.settings.requests_kept
        return most if most and self._context.payloads.is_inline(claim.stored) else None

    def running(self, worker_id: str) -> dict[str, str]:
        """The operations that the store believes to be running on the worker, with their sessions."""
        redis, most, found = self._context.redis, self._context.settings.max_running_samples, {}
        for session_id in redis.smembers(keys.worker_sessions(worker_id)):
            head = redis.zrange(keys.session_queue(session_id.decode()), 0, most - 1)
            for operation_id in head:
                if redis.hget(keys.operation(operation_id.decode()), "state") == b"RUNNING":
                    found[operation_id.decode()] = session_id.decode()
        return found

    def publish_overdue(self, worker_id: str) -> int:
        """Publishes again this worker's operations whose message seems lost; their number.

        A message may also just be waiting in the queue: the duplicate then finds its operation
        claimed, and does nothing.
        """
        redis, settings = self._context.redis, self._context.settings
        now = self._context.now()
        ids = redis.zrangebyscore(keys.DUE, "-inf", now - settings.redispatch_after, start=0, num=1000)
        overdue = []
        for operation_id in ids:
            row = redis.hmget(keys.operation(operation_id.decode()), OPERATION_FIELDS)
            operation = operation_from(operation_id.decode(), row)
            if operation is None:
                redis.zrem(keys.DUE, operation_id)
            elif redis.hget(keys.session(operation.session_id), "worker") == worker_id.encode():
                trace = redis.hget(keys.operation(operation_id.decode()), "trace")
                overdue.append([operation_id, operation.kind.encode(), worker_id.encode(), trace])
                redis.zadd(keys.DUE, {operation_id: now}, xx=True)
        self._context.publish(overdue)
        return len(overdue)
