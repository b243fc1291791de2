"""Bodies of the wire in the fewest words."""

from typing import Any


def model_input(*chunks: list[Any]) -> dict[str, Any]:
    return {"chunks": [{"encoded_text": {"tokens": tokens}} for tokens in chunks]}


def sample_body(tokens: list[Any], num_samples: Any = 1, **params: Any) -> dict[str, Any]:
    return {"prompt": model_input(tokens), "num_samples": num_samples, "sampling_params": params}


def sample(
    tokens: list[Any], targets: list[Any] | None = None, mask: list[Any] | None = None, **grpo: list[Any]
) -> dict[str, Any]:
    """One training sample; GRPO arrays by name."""
    inputs: dict[str, Any] = {}
    if targets is not None:
        inputs["target_tokens"] = {"data": targets}
    if mask is not None:
        inputs["loss_mask"] = {"data": mask}
    if grpo:
        inputs["grpo_inputs"] = {name: {"data": data} for name, data in grpo.items()}
    return {"model_input": model_input(tokens), "loss_inputs": inputs}


def policy(tokens: list[Any], targets: list[Any], **arrays: list[Any]) -> dict[str, Any]:
    """The same with the arrays of a policy loss other than GRPO."""
    made = sample(tokens, targets, **arrays)
    made["loss_inputs"]["policy_inputs"] = made["loss_inputs"].pop("grpo_inputs")
    return made


def cross_entropy(*samples: dict[str, Any]) -> dict[str, Any]:
    return {"samples": list(samples), "loss": {"type": "LOSS_TYPE_CROSS_ENTROPY"}}


def grpo(*samples: dict[str, Any], **params: Any) -> dict[str, Any]:
    return {"samples": list(samples), "loss": {"type": "LOSS_TYPE_GRPO", "grpo_params": params}}
