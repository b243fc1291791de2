"""An operation: one accepted request of one session, from POST to COMPLETED or FAILED."""

from enum import StrEnum

import msgspec
from msgspec.structs import replace


class OperationKind(StrEnum):
    """What an operation does; the value is its name in paths, keys and logs. domain/kinds.py says more of each."""

    CREATE_SESSION = "create-session"
    SAMPLE = "sample"
    FORWARD_BACKWARD = "forward-backward"
    CUSTOM_FORWARD_BACKWARD = "custom-forward-backward"
    OPTIM_STEP = "optim-step"
    WEIGHTS_SYNC = "weights-sync"
    TRAINING_CHECKPOINT = "training-checkpoint"
    INFERENCE_CHECKPOINT = "inference-checkpoint"
    STOP_SESSION = "stop-session"

    @property
    def is_public(self) -> bool:
        """Whether a user asked for it by name; the two ends of a session are ours."""
        return self not in (OperationKind.CREATE_SESSION, OperationKind.STOP_SESSION)

    @property
    def task_name(self) -> str:
        """The Celery task that runs operations of this kind."""
        return self.value.replace("-", "_")


class OperationStatus(StrEnum):
    """What a client sees; the store divides PENDING further (see store/transitions.py)."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"

    @property
    def is_ended(self) -> bool:
        return self in (OperationStatus.COMPLETED, OperationStatus.FAILED)


class ErrorCode(StrEnum):
    """Why an operation failed."""

    INVALID_INPUT = "INVALID_INPUT"
    SESSION_NOT_ACTIVE = "SESSION_NOT_ACTIVE"
    RESOURCE_EXHAUSTED = "RESOURCE_EXHAUSTED"
    TIMEOUT = "TIMEOUT"
    NON_FINITE = "NON_FINITE"
    CANCELLED = "CANCELLED"
    INTERNAL_ERROR = "INTERNAL_ERROR"


class OperationError(msgspec.Struct, frozen=True):
    """The code and the sentence (what happened, what to do) of a FAILED operation."""

    code: ErrorCode
    message: str


class OperationFailedError(Exception):
    """Raised by the engine: the operation ends FAILED and nothing it would have changed changes."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        # Both are in `args`, so that the exception can be pickled, which Celery asks of one.
        super().__init__(code, message)
        self.error = OperationError(code, message)

    def __str__(self) -> str:
        return self.error.message


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """One operation as the store knows it. Times are Unix seconds by the store's clock.

    `uploaded_in` are the seconds from its request's arrival to `created_at`: the body on the wire, and its checks.
    `read_at` is when a client first read the result.
    """

    id: str
    session_id: str
    kind: OperationKind
    seq: int
    status: OperationStatus
    created_at: float
    started_at: float | None = None
    ended_at: float | None = None
    read_at: float | None = None
    uploaded_in: float = 0.0
    error: OperationError | None = None
    result_expired: bool = False

    @property
    def as_accepted(self) -> "Operation":
        """As it was before anything was done for it."""
        return replace(self, status=OperationStatus.PENDING, started_at=None, ended_at=None, error=None)
