"""How long operations may run: a limit for each kind, every one a setting; a request may ask for less."""

import msgspec

from domain.kinds import KINDS
from domain.operation import OperationKind


class TimeLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds, from when an operation begins to run."""

    create_session_timeout: float = 3600.0
    sample_timeout: float = 3600.0
    forward_backward_timeout: float = 3600.0
    optim_step_timeout: float = 600.0
    weights_sync_timeout: float = 600.0
    checkpoint_timeout: float = 3600.0

    def of(self, kind: OperationKind) -> float | None:
        """None for a kind that has no limit."""
        name = KINDS[kind].time_limit
        return None if name is None else float(getattr(self, name))


def setting_of(kind: OperationKind) -> str:
    """What an operator sets the kind's limit with."""
    return f"CELERITY_{(KINDS[kind].time_limit or '').upper()}"
