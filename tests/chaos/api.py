"""What a trial needs of a dialect: to ask in it, and to read how an operation ended."""

from typing import Any, NamedTuple, Protocol

import httpx

from domain.forward_backward import Dro, Grpo, Loss
from domain.operation import ErrorCode, OperationKind
from testing.bodies import Json
from tests.chaos.plan import Operation


class End(NamedTuple):
    """How an operation ended: with its data where it COMPLETED, or with the code of its error."""

    data: Json | None
    code: ErrorCode | None = None

    @property
    def had_no_effect(self) -> bool:
        """By what it says: it was cancelled, or its session was stopped before it began."""
        return self.code in (ErrorCode.CANCELLED, ErrorCode.SESSION_NOT_ACTIVE)


class Api(Protocol):
    def create_session(self, key: str, seed: int, origin: str | None) -> str:
        """The id of a new session, which goes on from the checkpoint `origin` if there is one. `seed` draws its
        first weights where the dialect can say so."""

    def send(self, session_id: str, operation: Operation, key: str) -> httpx.Response: ...

    def operation_id(self, accepted: Json) -> str:
        """From the answer to `send`."""

    def stop(self, session_id: str, key: str, *, with_resources: bool) -> None:
        """With what it is attached to, where the dialect has such."""

    def session_path(self, session_id: str) -> str: ...

    def operation_path(self, session_id: str, kind: OperationKind, operation_id: str) -> str: ...

    def end(self, session_id: str, operation: Operation, operation_id: str) -> End | None:
        """How the operation ended; None while it has not."""

    def view(self, kind: OperationKind, result: Any) -> Json:
        """What `End.data` says of the engine's result, checkpoints excepted."""


def loss_config(loss: Loss) -> Json:
    """As both dialects write it, where its bounds are the defaults."""
    name = str(loss.__struct_config__.tag)
    config: Json = {"type": f"LOSS_TYPE_{name.upper()}"}
    if isinstance(loss, Grpo):
        config["grpo_params"] = {
            "beta": loss.beta,
            "agg_type": f"GRPO_LOSS_AGGREGATION_TYPE_{loss.aggregation.name}",
            "ratio_type": f"GRPO_LOSS_RATIO_TYPE_{loss.ratio_type.name}",
        }
    elif isinstance(loss, Dro):
        config["dro_params"] = {"beta": loss.beta}
    return config
