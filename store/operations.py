"""Operations as clients see them: accepted, read, waited for, listed, cancelled."""

import time
from collections.abc import Callable
from functools import partial
from itertools import accumulate
from typing import Any, TypeVar
from uuid import uuid4

import msgspec

from domain.codec import decode, decode_plain, encode
from domain.operation import Operation, OperationKind, OperationStatus
from domain.session import Session
from store import keys
from store.context import Context
from store.errors import (
    KeyReusedError,
    LimitReachedError,
    NotCancellableError,
    NotFoundError,
    ObjectMissingError,
    SessionNotActiveError,
    TooManyWaitingError,
)
from store.idempotency import IdempotencyKey, idempotency_arguments
from store.notices import Notices
from store.records import OPERATION_FIELDS, operation_from
from store.sessions import Sessions
from tracing import carried

OPTIM_STEP, WEIGHTS_SYNC = (kind.value.encode() for kind in (OperationKind.OPTIM_STEP, OperationKind.WEIGHTS_SYNC))

T = TypeVar("T", bound=msgspec.Struct)
R = TypeVar("R")


class Operations:
    def __init__(self, context: Context, sessions: Sessions, notices: Notices) -> None:
        self._context = context
        self._sessions = sessions
        self._notices = notices

    def accept(
        self,
        session_id: str,
        kind: OperationKind,
        request: msgspec.Struct,
        idempotency_key: IdempotencyKey | None = None,
        uploaded_in: float = 0.0,
        timeout_seconds: float | None = None,
    ) -> Operation:
        """A new operation at the end of its session's queue, dispatched if its turn is now.

        It may run for `timeout_seconds`, or else for what the worker allows its kind. A key that came before with the
        same body gives the first operation.
        Raises NotFoundError, SessionNotActiveError, LimitReachedError, KeyReusedError, ObjectsAwayError.
        """
        operation_id = str(uuid4())
        settings = self._context.settings
        stored = self._context.payloads.put(f"requests/{operation_id}", encode(request), settings.disk_floor_bytes)
        reply = self._context.scripts.run(
            "accept",
            *OPERATION_FIELDS,
            session=session_id,
            id=operation_id,
            kind=kind,
            request=stored,
            **idempotency_arguments(idempotency_key),
            most_waiting=settings.max_waiting_operations,
            most_samples=settings.max_running_samples,
            most_of_key=settings.max_waiting_per_key,
            trace=carried(),
            uploaded_in=f"{uploaded_in:.6f}",
            timeout=timeout_seconds,
        )
        if reply[0] == b"accepted":
            self._context.publish(reply[1])
            operation = operation_from(operation_id, reply[2])
            assert operation is not None
            return operation
        self._context.payloads.discard(stored)
        if reply[0] == b"existing":
            return self.get(session_id, reply[1].decode())
        raise self._refusal(reply)

    def _refusal(self, reply: list[Any]) -> Exception:
        match reply[0]:
            case b"unknown":
                return NotFoundError("no such training session")
            case b"inactive":
                why = f" ({reply[2].decode()})" if reply[2] else ""
                return SessionNotActiveError(f"the session is {reply[1].decode()} and takes no new operations{why}")
            case b"full":
                return TooManyWaitingError(self._context.settings.max_waiting_operations)
            case b"owner-full":
                return LimitReachedError(
                    f"{reply[1]} operations of this API key have not ended yet, the most it may have"
                )
            case _:
                assert reply[0] == b"reused", reply
                return KeyReusedError()

    def get(self, session_id: str, operation_id: str, kind: OperationKind | None = None) -> Operation:
        """The operation, if it is one of this session and (when given) of this kind.

        Raises NotFoundError: also for one that is no longer kept.
        """
        operation = self.find(operation_id)
        if operation is None and self._context.redis.hexists(keys.session(session_id), "has_expired"):
            raise NotFoundError(
                "no such operation in this training session, or one that is older than results are kept"
            )
        if operation is None or operation.session_id != session_id or not operation.kind.is_public:
            raise NotFoundError("no such operation in this training session")
        if kind is not None and operation.kind is not kind:
            raise NotFoundError(f"no such {kind} operation in this training session")
        if operation.result_expired:
            raise NotFoundError("the result of this operation is older than results are kept, and has been removed")
        return operation

    def find(self, operation_id: str) -> Operation | None:
        """The operation of any session and kind; None when there is none, or it is no longer kept."""
        row = self._context.redis.hmget(keys.operation(operation_id), OPERATION_FIELDS)
        return operation_from(operation_id, row)

    def wait(self, session_id: str, operation_id: str, kind: OperationKind | None, seconds: float) -> Operation:
        """`get`, but held until the operation has ended or the time is up."""
        deadline = time.monotonic() + seconds
        with self._notices.expect(operation_id) as ended:
            while True:
                operation = self.get(session_id, operation_id, kind)
                remaining = deadline - time.monotonic()
                if operation.status.is_ended or remaining <= 0:
                    return operation
                ended.wait(remaining)

    def settled(self, session_id: str, seconds: float) -> Session:
        """The session, held while it is being created or stopped, for at most so long."""
        deadline = time.monotonic() + seconds
        while True:
            session, remaining = self._sessions.get(session_id), deadline - time.monotonic()
            ends = self._context.redis.zrange(keys.session_queue(session_id), 0, 0)
            if not session.status.is_changing or not ends or remaining <= 0:
                return session
            with self._notices.expect(ends[0].decode()) as ended:
                if self._context.redis.zscore(keys.session_queue(session_id), ends[0]) is not None:
                    ended.wait(remaining)

    def steps_to_publish(self, session_id: str) -> dict[str, int]:
        """Each weights-sync to come, in order, and the step that it will publish if no optim-step before it fails."""
        redis = self._context.redis
        with redis.pipeline(transaction=True) as pipeline:
            pipeline.hget(keys.session(session_id), "step")
            pipeline.zrange(keys.session_queue(session_id), 0, -1)
            step, queue = pipeline.execute()
        ids, step = [id.decode() for id in queue], int(step or 0)
        with redis.pipeline(transaction=False) as pipeline:
            for id in ids:
                pipeline.hget(keys.operation(id), "kind")
            kinds = pipeline.execute()
        steps = accumulate((kind == OPTIM_STEP for kind in kinds), initial=step)
        return {id: step for id, kind, step in zip(ids, kinds, steps, strict=False) if kind == WEIGHTS_SYNC}

    def ahead(self, operation: Operation) -> int | None:
        """How many operations of its session come before a pending one; None once it has begun."""
        if operation.status is not OperationStatus.PENDING:
            return None
        rank: int | None = self._context.redis.zrank(keys.session_queue(operation.session_id), operation.id)
        return rank

    def answer(self, operation: Operation, into: type[T]) -> T:
        """The `result`, read by a client: the first time is kept."""
        assert operation.status is OperationStatus.COMPLETED
        return self._decoded(
            "result", lambda: self._context.scripts.run("read_result", id=operation.id), partial(decode, into=into)
        )

    def result(self, operation: Operation, into: type[T]) -> T:
        """What a COMPLETED operation answered. Raises NotFoundError when it is no longer kept."""
        assert operation.status is OperationStatus.COMPLETED
        return self._decoded("result", self._field(operation, "result"), partial(decode, into=into))

    def plain_result(self, operation: Operation) -> Any:
        """The `result` as dicts, lists and numbers, whatever the operation's kind."""
        assert operation.status is OperationStatus.COMPLETED
        return self._decoded("result", self._field(operation, "result"), decode_plain)

    def request(self, operation: Operation, into: type[T]) -> T:
        """What an operation asked for. Raises NotFoundError when that is no longer kept: it is of the newest ones of
        its session, and of those that have not ended."""
        return self._decoded("request", self._field(operation, "request"), partial(decode, into=into))

    def _field(self, operation: Operation, name: str) -> Callable[[], bytes | None]:
        return lambda: self._context.redis.hget(keys.operation(operation.id), name)

    def _decoded(self, name: str, read: Callable[[], bytes | None], decoded: Callable[[bytes], R]) -> R:
        """Raises ObjectsAwayError for a payload that is kept and cannot be had."""
        while (stored := read()) is not None:
            try:
                return decoded(self._context.payloads.get(stored))
            except ObjectMissingError:
                # Its time may just have been over.
                if read() == stored:
                    raise
        raise NotFoundError(f"the {name} of this operation is no longer kept")

    def unended(self, owner: str) -> int:
        """How many operations of the owner wait or run, over all its sessions."""
        return int(self._context.redis.scard(keys.owner_waiting(owner)))

    def cancel(self, session_id: str, operation_id: str) -> Operation:
        """Ends an operation that has not begun. Raises NotFoundError, NotCancellableError."""
        self.get(session_id, operation_id)
        reply = self._context.scripts.run(
            "cancel",
            id=operation_id,
            session=session_id,
            most_samples=self._context.settings.max_running_samples,
        )
        if reply[0] == b"begun":
            raise NotCancellableError("only an operation that has not started can be cancelled")
        self._context.publish(reply[1])
        return self.get(session_id, operation_id)

    def list(self, session_id: str, limit: int, offset: int) -> list[Operation]:
        """Those that are kept, newest first."""
        redis = self._context.redis
        ids = [id.decode() for id in redis.zrevrange(keys.operations(session_id), offset, offset + limit - 1)]
        with redis.pipeline(transaction=False) as pipeline:
            for operation_id in ids:
                pipeline.hmget(keys.operation(operation_id), OPERATION_FIELDS)
            rows = pipeline.execute()
        found = (operation_from(operation_id, row) for operation_id, row in zip(ids, rows, strict=True))
        return [operation for operation in found if operation]
