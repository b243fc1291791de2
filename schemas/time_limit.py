"""How long the operation that a request asks for may run, up to the server's limit for its kind."""

from domain.operation import OperationKind
from domain.time_limits import TimeLimits, setting_of
from schemas.bounds import FLOAT32_MAX, Bounds
from schemas.fields import Number
from schemas.problems import refusal

FIELD = "timeout_seconds"
LEAST = 0.001


def timeout_seconds() -> Number:
    return Number(
        Bounds(LEAST, FLOAT32_MAX),
        description="Seconds that the operation may run, without the time that it waits for its turn; then it ends "
        "FAILED with TIMEOUT and has changed nothing. At most, and unless given, the server's limit for its kind.",
    )


def check_timeout(seconds: float | None, kind: OperationKind, limits: TimeLimits) -> None:
    """Raises ValidationError for more than the server allows."""
    most = limits.of(kind)
    if seconds is not None and most is not None and seconds > most:
        raise refusal(FIELD, f"must be at most {most:g}, this server's {setting_of(kind)}")
