"""A training session: one adapter over one base model, with its operations in order."""

from enum import StrEnum

import msgspec

from domain.api_key import ANONYMOUS
from domain.model import ModelCard
from domain.optim_step import Muon

# fp32: a weight, its gradient and the optimizer's two moments; and where samples use published weights, those too.
BYTES_PER_WEIGHT = 16
PUBLISHED_BYTES = 4


class SessionStatus(StrEnum):
    """CREATING -> RUNNING -> STOPPING -> STOPPED, or EXPIRED with its model resources; or ERROR with a reason."""

    CREATING = "CREATING"
    RUNNING = "RUNNING"
    STOPPING = "STOPPING"
    STOPPED = "STOPPED"
    ERROR = "ERROR"
    EXPIRED = "EXPIRED"

    @property
    def is_active(self) -> bool:
        """Whether the session takes new operations."""
        return self in (SessionStatus.CREATING, SessionStatus.RUNNING)

    @property
    def is_ended(self) -> bool:
        return self in (SessionStatus.STOPPED, SessionStatus.ERROR, SessionStatus.EXPIRED)

    @property
    def is_changing(self) -> bool:
        """Whether it becomes another status without being asked to."""
        return self in (SessionStatus.CREATING, SessionStatus.STOPPING)


class Dialect(StrEnum):
    """An API that sessions are made with: our own under /v1, or that of Together's SDK."""

    NATIVE = "native"
    TOGETHER = "together"


class LoraConfig(msgspec.Struct, frozen=True):
    """Rank and scale (alpha / rank) of the adapter; dropout acts in cross-entropy only."""

    rank: int = 8
    alpha: int = 16
    dropout: float = 0.05


class SessionSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What a session is made from; fixed for its whole life.

    `seed` draws the initial adapter weights and the dropout masks, so that a replay of the
    session's operations gives the same numbers. `checkpoint_id` is the training checkpoint that it goes on
    from, whose weights then stand in place of the initial ones; without `load_optimizer` it takes over nothing else.
    `owner` is the id of the API key it was made with. `resources_id` are the model resources that it belongs to.
    Where it `publishes`, samples use the weights of the last weights-sync instead of the current ones.
    """

    base_model: ModelCard
    lora: LoraConfig
    seed: int
    checkpoint_id: str | None = None
    load_optimizer: bool = True
    owner: str = ANONYMOUS
    resources_id: str | None = None
    publishes: bool = False
    has_generator: bool = True
    muon: Muon | None = None

    @property
    def dialect(self) -> Dialect:
        """The API it was made with: only Together's has model resources."""
        return Dialect.NATIVE if self.resources_id is None else Dialect.TOGETHER

    @property
    def adapter_bytes(self) -> int:
        """Memory that the adapter takes, with its gradients and optimizer state."""
        each = BYTES_PER_WEIGHT + (PUBLISHED_BYTES if self.publishes else 0)
        return each * self.lora.rank * self.base_model.adapter_width


class Labels(msgspec.Struct, frozen=True):
    """What a user calls a session, and may change: a name, and facts about the run it belongs to."""

    display_name: str = ""
    run: dict[str, str] = {}


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """One session as the store knows it. Times are Unix seconds by the store's clock."""

    id: str
    spec: SessionSpec
    status: SessionStatus
    step: int
    created_at: float
    updated_at: float
    worker_id: str
    reason: str | None = None
    published_step: int = 0
    labels: Labels = Labels()

    @property
    def owner(self) -> str:
        return self.spec.owner
