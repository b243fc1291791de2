"""What operations answer, typed. Fields that a later server adds are passed over."""

import msgspec


class Sequence(msgspec.Struct, frozen=True):
    """One completion: its tokens without the prompt, a raw logprob for each, "stop" or "length"."""

    tokens: list[int]
    logprobs: list[float]
    stop_reason: str


class Sampled(msgspec.Struct, frozen=True):
    sequences: list[Sequence]


class Trained(msgspec.Struct, frozen=True):
    """The scalar whose gradient was added, and named numbers about it."""

    loss: float
    metrics: dict[str, float]


class Stepped(msgspec.Struct, frozen=True):
    """`step` counts the session's finished optim-steps."""

    step: int
    metrics: dict[str, float]


class Saved(msgspec.Struct, frozen=True):
    checkpoint_id: str
    model_name: str | None = None
