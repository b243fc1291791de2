"""The supported models, with the limits that this server has."""

from typing import Any

from marshmallow import fields

from domain.limits import Limits
from domain.model import ModelCard
from domain.sample import SamplingParams
from schemas.base import AnswerSchema

# The dialect asks for the name of a GPU and knows only this one. Here it stands for whatever device the workers have.
GPU_TYPE = "B200-SXM"


def gpu_type() -> fields.String:
    description = "The one name that the dialect has; stands for the device of the workers."
    return fields.String(required=True, metadata={"enum": [GPU_TYPE], "description": description})


def count(description: str, example: int) -> fields.Integer:
    return fields.Integer(required=True, metadata={"description": description, "examples": [example]})


class SamplingDefaultsSchema(AnswerSchema):
    logprobs = count("Logprobs per token.", 1)
    max_tokens = count("Most tokens of a completion.", 100)
    n = count("Completions of a prompt.", 1)
    temperature = fields.Float(required=True, metadata={"description": "Temperature.", "examples": [1.0]})


class GeneratorSchema(AnswerSchema):
    context_length = count("Most tokens of prompt and completion.", 8192)
    sampling_defaults = fields.Nested(SamplingDefaultsSchema, required=True)


class LoraLimitsSchema(AnswerSchema):
    max_batch_size = count("Most samples of a forward-backward.", 4096)
    max_rank = count("Highest rank of an adapter.", 256)
    max_seq_length = count("Most tokens of a sample.", 8192)


class TrainerSchema(AnswerSchema):
    lora = fields.Nested(LoraLimitsSchema, required=True)


class SupportedComputeSchema(AnswerSchema):
    gpu_type = gpu_type()
    generator_config = fields.Nested(GeneratorSchema, required=True)
    trainer_config = fields.Nested(TrainerSchema, required=True)


class SupportedModelSchema(AnswerSchema):
    base_model = fields.String(
        required=True,
        metadata={"description": "What base_model takes.", "examples": ["HuggingFaceTB/SmolLM2-135M-Instruct"]},
    )
    default_gpu_type = gpu_type()
    compute_configs = fields.List(fields.Nested(SupportedComputeSchema), required=True)


class SupportedModelsSchema(AnswerSchema):
    data = fields.List(fields.Nested(SupportedModelSchema), required=True)


def supported_view(card: ModelCard, limits: Limits) -> dict[str, Any]:
    defaults = SamplingParams()
    sampling = {"logprobs": 1, "max_tokens": defaults.max_tokens, "n": 1, "temperature": defaults.temperature}
    lora = {
        "max_batch_size": limits.max_samples_per_call,
        "max_rank": limits.max_rank,
        "max_seq_length": card.context_length,
    }
    compute = {
        "gpu_type": GPU_TYPE,
        "generator_config": {"context_length": card.context_length, "sampling_defaults": sampling},
        "trainer_config": {"lora": lora},
    }
    return {"base_model": card.name, "default_gpu_type": GPU_TYPE, "compute_configs": [compute]}
