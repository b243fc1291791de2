"""Short ways to write what the SDK takes."""

from collections.abc import Sequence
from typing import Any, cast

from together.post_training import LossConfig, ModelInput, Sample

PROMPT = [5, 6, 7, 8]


def tokens(*ids: int) -> ModelInput:
    return {"chunks": [{"encoded_text": {"tokens": list(ids)}}]}


def supervised(sequence: Sequence[int], weights: Sequence[float] | None = None) -> Sample:
    inputs = {"target_tokens": list(sequence[1:]), "weights": list(weights or [1.0] * (len(sequence) - 1))}
    return Sample(model_input=tokens(*sequence[:-1]), loss_fn_inputs=cast(Any, inputs))


def scored(prompt: Sequence[int], completion: Any, advantage: float, **more: Any) -> Sample:
    """A sampled sequence, as a sample of a policy loss that trains the completion."""
    before, ids = len(prompt) - 1, [int(token) for token in completion.tokens]
    inputs = {
        "target_tokens": [*prompt[1:], *ids],
        "mask": [0] * before + [1] * len(ids),
        "logprobs": [0.0] * before + completion.logprobs,
        "advantages": [0.0] * before + [advantage] * len(ids),
        **{name: [0.0] * before + list(values) for name, values in more.items()},
    }
    return Sample(model_input=tokens(*prompt, *ids[:-1]), loss_fn_inputs=cast(Any, inputs))


def loss(name: str, **params: Any) -> LossConfig:
    short = name.removeprefix("LOSS_TYPE_").lower()
    config = {"type": name} | ({f"{short}_params": params} if params else {})
    return cast(LossConfig, config)
