"""A training sample: the model's input and the per-token arrays that its loss reads."""

from typing import Any

import msgspec
import numpy as np
from marshmallow import ValidationError, fields, post_load

from schemas.base import RequestSchema
from schemas.model_input import ModelInput, ModelInputSchema
from schemas.problems import refusal
from schemas.tensors import AdvantagesSchema, LogprobsSchema, LossMaskSchema, TargetTokensSchema

ARRAYS = ("target_tokens", "loss_mask")
POLICY_FIELDS = ("grpo_inputs", "policy_inputs")


class TrainingSample(msgspec.Struct, frozen=True, kw_only=True):
    """Every array that is there has the input's length T: targets int64, the rest float32. `policy_field` is the
    field that the arrays of a policy loss came in, where the dialect has several."""

    model_input: ModelInput
    target_tokens: np.ndarray | None
    weights: np.ndarray | None
    policy: dict[str, np.ndarray] | None
    policy_field: str | None = None


class PolicyInputsSchema(RequestSchema):
    advantages = fields.Nested(AdvantagesSchema, required=True)
    generator_logprobs = fields.Nested(LogprobsSchema, required=True)


class GrpoInputsSchema(PolicyInputsSchema):
    reference_logprobs = fields.Nested(
        LogprobsSchema,
        metadata={"description": "Required when beta is above 0; at beta 0 their part in the loss is 0."},
    )


class LossInputsSchema(RequestSchema):
    target_tokens = fields.Nested(
        TargetTokensSchema,
        metadata={
            "description": "With it, entry i of every array belongs to predicting target_tokens[i] from the input up "
            "to and including i. Without, the input is the whole sequence, entry i belongs to token i, and entry 0 is "
            "never trained."
        },
    )
    loss_mask = fields.Nested(LossMaskSchema, metadata={"description": "All ones when absent."})
    grpo_inputs = fields.Nested(
        GrpoInputsSchema, metadata={"description": "Required for LOSS_TYPE_GRPO, refused for other losses."}
    )
    policy_inputs = fields.Nested(
        PolicyInputsSchema,
        metadata={
            "description": "Required for LOSS_TYPE_IMPORTANCE_SAMPLING, _PPO, _CISPO, _DRO and _DPPO, refused for the "
            "others."
        },
    )


class TrainingSampleSchema(RequestSchema):
    model_input = fields.Nested(ModelInputSchema, required=True)
    loss_inputs = fields.Nested(LossInputsSchema, required=True)

    @post_load
    def make(self, data: dict[str, Any], **_: Any) -> TrainingSample:
        inputs = data["loss_inputs"]
        given = [name for name in POLICY_FIELDS if name in inputs]
        if len(given) > 1:
            raise refusal(f"loss_inputs.{given[1]}", f"must be absent beside {given[0]}")
        length = len(data["model_input"])
        check_lengths({name: inputs[name] for name in ARRAYS if name in inputs}, length, "loss_inputs")
        for name in given:
            check_lengths(inputs[name], length, f"loss_inputs.{name}")
        return TrainingSample(
            model_input=data["model_input"],
            target_tokens=inputs.get("target_tokens"),
            weights=inputs.get("loss_mask"),
            policy=inputs[given[0]] if given else None,
            policy_field=given[0] if given else None,
        )


def check_lengths(arrays: dict[str, np.ndarray], length: int, path: str) -> None:
    wrong = {
        f"{path}.{name}.data": [f"has {len(array)} entries where the input has {length} tokens"]
        for name, array in arrays.items()
        if len(array) != length
    }
    if wrong:
        raise ValidationError(wrong)
