"""Redis hashes as the plain records of domain/."""

from collections.abc import Sequence

from domain.codec import decode
from domain.operation import ErrorCode, Operation, OperationError, OperationKind
from domain.session import Labels, Session, SessionSpec, SessionStatus
from store.transitions import OperationState

Values = Sequence[bytes | None]

SESSION_FIELDS = ("spec", "status", "step", "created_at", "updated_at", "worker", "reason", "published", "labels")
OPERATION_FIELDS = (
    "session", "kind", "seq", "state", "created_at", "started_at", "ended_at", "error_code", "error_message", "expired",
    "read_at", "uploaded_in",
)  # fmt: skip


def session_from(session_id: str, values: Values) -> Session | None:
    """The session whose hash holds `values` at SESSION_FIELDS; None when there is none."""
    spec, status, step, created_at, updated_at, worker, reason, published, labels = values
    if spec is None or status is None:
        return None
    return Session(
        id=session_id,
        spec=decode(spec, SessionSpec),
        status=SessionStatus(status.decode()),
        step=int(step or 0),
        created_at=float(created_at or 0),
        updated_at=float(updated_at or 0),
        worker_id=(worker or b"").decode(),
        reason=reason.decode() if reason else None,
        published_step=int(published or 0),
        labels=decode(labels, Labels) if labels else Labels(),
    )


def operation_from(operation_id: str, values: Values) -> Operation | None:
    """The operation whose hash holds `values` at OPERATION_FIELDS; None when there is none."""
    session, kind, seq, state, created_at, started_at, ended_at, code, message, expired, *transfer = values
    if session is None or kind is None or state is None:
        return None
    return Operation(
        id=operation_id,
        session_id=session.decode(),
        kind=OperationKind(kind.decode()),
        seq=int(seq or 0),
        status=OperationState(state.decode()).status,
        created_at=float(created_at or 0),
        started_at=float(started_at) if started_at else None,
        ended_at=float(ended_at) if ended_at else None,
        error=OperationError(ErrorCode(code.decode()), (message or b"").decode()) if code else None,
        result_expired=expired is not None,
        read_at=float(transfer[0]) if transfer[0] else None,
        uploaded_in=float(transfer[1] or 0),
    )
