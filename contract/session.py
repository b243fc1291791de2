"""A training session: one adapter over one base model, with its operations in order."""

from enum import StrEnum

import msgspec

from contract.api_key import ANONYMOUS
from contract.model import ModelCard


class SessionStatus(StrEnum):
    """CREATING -> RUNNING -> STOPPING -> STOPPED, or ERROR with a reason."""

    CREATING = "CREATING"
    RUNNING = "RUNNING"
    STOPPING = "STOPPING"
    STOPPED = "STOPPED"
    ERROR = "ERROR"


class LoraConfig(msgspec.Struct, frozen=True):
    """Rank and scale (alpha / rank) of the adapter; dropout acts in cross-entropy only."""

    rank: int = 8
    alpha: int = 16
    dropout: float = 0.05


class SessionSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What a session is made from; fixed for its whole life.

    `seed` draws the initial adapter weights and the dropout masks, so that a replay of the
    session's operations gives the same numbers. `checkpoint_id` is the training checkpoint that it goes on
    from, whose weights then stand in place of the initial ones. `owner` is the id of the API key it was made with.
    """

    base_model: ModelCard
    lora: LoraConfig
    seed: int
    checkpoint_id: str | None = None
    owner: str = ANONYMOUS


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

    @property
    def owner(self) -> str:
        return self.spec.owner
