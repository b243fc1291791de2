"""Bodies of requests of the native API."""

from collections.abc import Sequence
from typing import Any

Json = dict[str, Any]
SESSIONS = "/v1/rl/training-sessions"


def prompt(tokens: Sequence[int]) -> Json:
    return {"chunks": [{"encoded_text": {"tokens": list(tokens)}}]}


def sample_body(tokens: Sequence[int], num_samples: int = 1, **params: Any) -> Json:
    return {"prompt": prompt(tokens), "num_samples": num_samples, "sampling_params": params}


def train_body(samples: list[Json], loss: str = "LOSS_TYPE_GRPO", **params: Any) -> Json:
    config: Json = {"type": loss}
    if loss == "LOSS_TYPE_GRPO":
        config["grpo_params"] = {"agg_type": "token_mean", **params}
    elif params:
        config[f"{loss.removeprefix('LOSS_TYPE_').lower()}_params"] = params
    return {"samples": samples, "loss": config}


def step_body(learning_rate: float = 1e-4, **adamw: float) -> Json:
    return {"learning_rate": learning_rate, "adamw_params": adamw}


def whole(tokens: Sequence[int], mask: Sequence[int] | None = None) -> Json:
    """A cross-entropy sample: the whole sequence, each token but the first predicted."""
    inputs = {} if mask is None else {"loss_mask": {"data": list(mask)}}
    return {"model_input": prompt(tokens), "loss_inputs": inputs}


def scored(
    before: Sequence[int],
    sequence: Json,
    advantage: float,
    generator: Sequence[float] | None = None,
    reference: Sequence[float] | None = None,
) -> Json:
    """A GRPO sample of a sampled sequence, with its own logprobs as the generator's unless given."""
    zeros, tokens = [0.0] * len(before), sequence["tokens"]
    grpo = {
        "advantages": {"data": zeros + [advantage] * len(tokens)},
        "generator_logprobs": {"data": zeros + list(generator or sequence["logprobs"])},
    }
    if reference is not None:
        grpo["reference_logprobs"] = {"data": zeros + list(reference)}
    inputs = {"loss_mask": {"data": [0] * len(before) + [1] * len(tokens)}, "grpo_inputs": grpo}
    return {"model_input": prompt([*before, *tokens]), "loss_inputs": inputs}


def policy(sample: Json) -> Json:
    """A GRPO sample for another policy loss."""
    inputs = {
        "policy_inputs" if name == "grpo_inputs" else name: value for name, value in sample["loss_inputs"].items()
    }
    return {**sample, "loss_inputs": inputs}
