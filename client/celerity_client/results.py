"""What operations answer. Fields that a later server adds are ignored."""

from dataclasses import dataclass, fields
from typing import Any, TypeVar

Json = dict[str, Any]
R = TypeVar("R", bound="Result")


@dataclass(frozen=True)
class Result:
    @classmethod
    def from_json(cls: type[R], data: Json) -> R:
        names = {field.name for field in fields(cls)}
        return cls(**{name: value for name, value in data.items() if name in names})


@dataclass(frozen=True)
class Sequence(Result):
    """One completion: its tokens without the prompt, a raw logprob for each, "stop" or "length"."""

    tokens: list[int]
    logprobs: list[float]
    stop_reason: str


@dataclass(frozen=True)
class Sampled(Result):
    sequences: list[Sequence]

    @classmethod
    def from_json(cls, data: Json) -> "Sampled":
        return cls([Sequence.from_json(each) for each in data["sequences"]])


@dataclass(frozen=True)
class Trained(Result):
    """The scalar whose gradient was added, and named numbers about it."""

    loss: float
    metrics: dict[str, float]


@dataclass(frozen=True)
class Stepped(Result):
    """`step` counts the session's finished optim-steps."""

    step: int
    metrics: dict[str, float]


@dataclass(frozen=True)
class Saved(Result):
    checkpoint_id: str
    model_name: str | None = None
