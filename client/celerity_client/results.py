"""What operations answer. Fields that a later server adds are passed over."""

from dataclasses import dataclass, fields
from typing import Any, TypeVar

Json = dict[str, Any]
T = TypeVar("T")


@dataclass(frozen=True)
class Sequence:
    """One completion: its tokens without the prompt, a raw logprob for each, "stop" or "length"."""

    tokens: list[int]
    logprobs: list[float]
    stop_reason: str


@dataclass(frozen=True)
class Sampled:
    sequences: list[Sequence]

    @classmethod
    def from_json(cls, data: Json) -> "Sampled":
        return cls([_known(Sequence, each) for each in data["sequences"]])


@dataclass(frozen=True)
class Trained:
    """The scalar whose gradient was added, and named numbers about it."""

    loss: float
    metrics: dict[str, float]

    @classmethod
    def from_json(cls, data: Json) -> "Trained":
        return _known(cls, data)


@dataclass(frozen=True)
class Stepped:
    """`step` counts the session's finished optim-steps."""

    step: int
    metrics: dict[str, float]

    @classmethod
    def from_json(cls, data: Json) -> "Stepped":
        return _known(cls, data)


@dataclass(frozen=True)
class Saved:
    checkpoint_id: str
    model_name: str | None = None

    @classmethod
    def from_json(cls, data: Json) -> "Saved":
        return _known(cls, data)


def _known(cls: type[T], data: Json) -> T:
    names = {field.name for field in fields(cls)}  # type: ignore[arg-type]
    return cls(**{name: value for name, value in data.items() if name in names})
