"""The forward-backward body: losses, lengths, limits, and where an error points."""

from typing import Any

import pytest

from domain.forward_backward import (
    Aggregation,
    Cispo,
    CrossEntropy,
    Dppo,
    Dro,
    ForwardBackwardRequest,
    Grpo,
    ImportanceSampling,
    Loss,
    Ppo,
    RatioType,
)
from domain.limits import Limits
from domain.model import ModelCard
from schemas.forward_backward import ForwardBackwardBodySchema, forward_backward_request
from schemas.losses import PARAMS
from tests.schemas.bodies import cross_entropy, grpo, policy, sample
from tests.schemas.refusals import fields_of, problems_of

CARD = ModelCard(name="tiny", vocab_size=64, context_length=8)
INPUTS: dict[str, list[Any]] = {"advantages": [1.0, 2.0], "generator_logprobs": [-1.0, -2.0]}


def request_of(body: dict[str, Any], limits: Limits = Limits()) -> ForwardBackwardRequest:  # noqa: B008 - frozen
    return forward_backward_request(ForwardBackwardBodySchema().load(body), CARD, limits, horizon=1024)


def test_cross_entropy_has_no_parameters() -> None:
    body = cross_entropy(sample([1, 2], [2, 3]))
    assert request_of(body).loss == CrossEntropy()
    body["loss"]["cross_entropy_params"] = {}
    assert request_of(body).loss == CrossEntropy()


def test_grpo_defaults_and_clip_offsets_as_absolute_ratios() -> None:
    body = grpo(sample([1, 2], [2, 3], **INPUTS))
    assert request_of(body).loss == Grpo(
        ratio_low=0.8, ratio_high=1.28, beta=0.0, aggregation=Aggregation.FIXED_HORIZON
    )
    del body["loss"]["grpo_params"]
    assert request_of(body).loss == Grpo(ratio_low=0.8, ratio_high=1.28)


@pytest.mark.parametrize(
    ("low", "high", "ratios"), [(0, 0, (1.0, 1.0)), (1, 0.5, (0.0, 1.5)), (0.75, 1.25, (0.25, 2.25))]
)
def test_offsets_are_taken_literally(low: float, high: float, ratios: tuple[float, float]) -> None:
    loss = request_of(grpo(sample([1, 2], [2, 3], **INPUTS), clip_low=low, clip_high=high)).loss
    assert isinstance(loss, Grpo)
    assert (loss.ratio_low, loss.ratio_high) == ratios


@pytest.mark.parametrize(
    ("name", "aggregation"),
    [
        ("token_mean", Aggregation.TOKEN_MEAN),
        ("Sequence_Mean", Aggregation.SEQUENCE_MEAN),
        ("FIXED_HORIZON", Aggregation.FIXED_HORIZON),
        ("GRPO_LOSS_AGGREGATION_TYPE_TOKEN_MEAN", Aggregation.TOKEN_MEAN),
        ("grpo_loss_aggregation_type_sequence_mean", Aggregation.SEQUENCE_MEAN),
        ("GRPO_LOSS_AGGREGATION_TYPE_UNSPECIFIED", Aggregation.FIXED_HORIZON),
        (None, Aggregation.FIXED_HORIZON),
    ],
)
def test_both_spellings_of_an_aggregation_in_any_case(name: str | None, aggregation: Aggregation) -> None:
    loss = request_of(grpo(sample([1, 2], [2, 3], **INPUTS), agg_type=name)).loss
    assert isinstance(loss, Grpo)
    assert loss.aggregation is aggregation


@pytest.mark.parametrize(
    ("loss", "made"),
    [
        ({"type": "LOSS_TYPE_IMPORTANCE_SAMPLING"}, ImportanceSampling()),
        ({"type": "LOSS_TYPE_PPO"}, Ppo(ratio_low=0.8, ratio_high=1.2)),
        (
            {"type": "LOSS_TYPE_PPO", "ppo_params": {"clip_low": 0.25, "clip_high": 0.5}},
            Ppo(ratio_low=0.75, ratio_high=1.5),
        ),
        ({"type": "LOSS_TYPE_CISPO"}, Cispo(ratio_low=0.0, ratio_high=4.0)),
        ({"type": "LOSS_TYPE_CISPO", "cispo_params": {"clip_low": 0.5}}, Cispo(ratio_low=0.5, ratio_high=4.0)),
        ({"type": "LOSS_TYPE_DRO", "dro_params": {"beta": 2}}, Dro(beta=2.0)),
        ({"type": "LOSS_TYPE_DPPO"}, Dppo(delta_low=0.15, delta_high=0.15)),
        ({"type": "LOSS_TYPE_DPPO", "dppo_params": {"delta_high": 0}}, Dppo(delta_low=0.15, delta_high=0.0)),
    ],
)
def test_each_loss_of_a_policy_with_its_parameters(loss: dict[str, Any], made: Loss) -> None:
    request = request_of({"samples": [policy([1, 2], [2, 3], **INPUTS)], "loss": loss})
    assert request.loss == made
    assert request.advantages_T is not None and request.advantages_T.tolist() == [1.0, 2.0]
    assert request.generator_logprobs_T is not None and request.generator_logprobs_T.tolist() == [-1.0, -2.0]


def test_a_ratio_may_be_that_of_the_whole_sample() -> None:
    loss = request_of(grpo(sample([1, 2], [2, 3], **INPUTS), ratio_type="sequence")).loss
    assert isinstance(loss, Grpo)
    assert loss.ratio_type is RatioType.SEQUENCE


@pytest.mark.parametrize("name", [name for name in PARAMS if name not in ("LOSS_TYPE_GRPO", "LOSS_TYPE_CROSS_ENTROPY")])
@pytest.mark.parametrize(("inputs", "field"), [(INPUTS, "grpo_inputs"), ({}, "policy_inputs")])
def test_the_inputs_of_another_policy_loss_are_policy_inputs(name: str, inputs: dict[str, Any], field: str) -> None:
    loss = {"type": name, **({"dro_params": {"beta": 1}} if name == "LOSS_TYPE_DRO" else {})}
    body = {"samples": [sample([1, 2], [2, 3], **inputs)], "loss": loss}
    assert fields_of(lambda: request_of(body)) == [f"samples[0].loss_inputs.{field}"]


def test_inputs_of_two_losses_are_refused() -> None:
    both = sample([1, 2], [2, 3], **INPUTS)
    both["loss_inputs"] |= policy([1, 2], [2, 3], **INPUTS)["loss_inputs"]
    assert fields_of(lambda: request_of(grpo(both))) == ["samples[0].loss_inputs.policy_inputs"]


@pytest.mark.parametrize(
    ("loss", "field"),
    [
        ({}, "loss.type"),
        ({"type": None}, "loss.type"),
        ({"type": "LOSS_TYPE_UNSPECIFIED"}, "loss.type"),
        ({"type": "grpo"}, "loss.type"),
        ({"type": 2}, "loss.type"),
        ({"type": "LOSS_TYPE_CROSS_ENTROPY", "grpo_params": {}}, "loss.grpo_params"),
        ({"type": "LOSS_TYPE_GRPO", "cross_entropy_params": {}}, "loss.cross_entropy_params"),
        ({"type": "LOSS_TYPE_GRPO", "grpo_params": {"clip_low": -0.1}}, "loss.grpo_params.clip_low"),
        ({"type": "LOSS_TYPE_GRPO", "grpo_params": {"clip_low": 1.1}}, "loss.grpo_params.clip_low"),
        ({"type": "LOSS_TYPE_GRPO", "grpo_params": {"clip_high": -0.1}}, "loss.grpo_params.clip_high"),
        ({"type": "LOSS_TYPE_GRPO", "grpo_params": {"beta": -1}}, "loss.grpo_params.beta"),
        ({"type": "LOSS_TYPE_GRPO", "grpo_params": {"agg_type": "mean"}}, "loss.grpo_params.agg_type"),
        ({"type": "LOSS_TYPE_GRPO", "grpo_params": {"ratio_type": "word"}}, "loss.grpo_params.ratio_type"),
        ({"type": "LOSS_TYPE_PPO", "grpo_params": {}}, "loss.grpo_params"),
        ({"type": "LOSS_TYPE_PPO", "ppo_params": {"clip_low": 1.5}}, "loss.ppo_params.clip_low"),
        ({"type": "LOSS_TYPE_IMPORTANCE_SAMPLING", "ppo_params": {}}, "loss.ppo_params"),
        ({"type": "LOSS_TYPE_CISPO", "cispo_params": {"clip_high": -1}}, "loss.cispo_params.clip_high"),
        ({"type": "LOSS_TYPE_DRO"}, "loss.dro_params"),
        ({"type": "LOSS_TYPE_DRO", "dro_params": {}}, "loss.dro_params.beta"),
        ({"type": "LOSS_TYPE_DPPO", "dppo_params": {"delta_low": 2}}, "loss.dppo_params.delta_low"),
    ],
)
def test_a_wrong_loss_is_refused(loss: dict[str, Any], field: str) -> None:
    body = {"samples": [sample([1, 2], [2, 3], **INPUTS)], "loss": loss}
    assert fields_of(lambda: request_of(body)) == [field]


def test_a_length_that_differs_is_named_with_both_lengths() -> None:
    body = grpo(sample([1, 2], [2, 3], **INPUTS), sample([1, 2], [2], [1, 1, 1], **{**INPUTS, "advantages": [1.0]}))
    assert problems_of(lambda: request_of(body)) == [
        ("samples[1].loss_inputs.target_tokens.data", "has 1 entries where the input has 2 tokens"),
        ("samples[1].loss_inputs.loss_mask.data", "has 3 entries where the input has 2 tokens"),
    ]


def test_one_advantage_is_never_broadcast() -> None:
    body = grpo(sample([1, 2], [2, 3], advantages=[1.0], generator_logprobs=[-1.0, -1.0]))
    assert fields_of(lambda: request_of(body)) == ["samples[0].loss_inputs.grpo_inputs.advantages.data"]


def test_a_positive_beta_needs_reference_logprobs() -> None:
    without = sample([1, 2], [2, 3], **INPUTS)
    assert fields_of(lambda: request_of(grpo(without, beta=0.1))) == [
        "samples[0].loss_inputs.grpo_inputs.reference_logprobs"
    ]
    with_reference = sample([1, 2], [2, 3], **INPUTS, reference_logprobs=[-1.0, -3.0])
    reference = request_of(grpo(with_reference, beta=0.1)).reference_logprobs_T
    assert reference is not None
    assert reference.tolist() == [-1.0, -3.0]


def test_reference_logprobs_at_beta_0_are_accepted_and_weigh_nothing() -> None:
    body = grpo(sample([1, 2], [2, 3], **INPUTS, reference_logprobs=[-1.0, -3.0]), beta=0)
    assert request_of(body).reference_logprobs_T is None


def test_grpo_inputs_belong_to_grpo() -> None:
    plain, full = sample([1, 2], [2, 3]), sample([1, 2], [2, 3], **INPUTS)
    assert fields_of(lambda: request_of(grpo(full, plain))) == ["samples[1].loss_inputs.grpo_inputs"]
    assert fields_of(lambda: request_of(cross_entropy(plain, full))) == ["samples[1].loss_inputs.grpo_inputs"]


@pytest.mark.parametrize(
    ("name", "dtype", "accepted"),
    [
        ("target_tokens", "D_TYPE_UNSPECIFIED", True),
        ("target_tokens", "D_TYPE_INT64", True),
        ("target_tokens", None, True),
        ("target_tokens", "D_TYPE_FLOAT32", False),
        ("target_tokens", "D_TYPE_BFLOAT16", False),
        ("loss_mask", "D_TYPE_FLOAT32", False),
        ("loss_mask", "int64", False),
        ("loss_mask", 1, False),
    ],
)
def test_a_dtype_that_the_array_cannot_have_is_refused(name: str, dtype: Any, accepted: bool) -> None:
    body = cross_entropy(sample([1, 2], [2, 3], [1, 1]))
    body["samples"][0]["loss_inputs"][name]["dtype"] = dtype
    if accepted:
        assert request_of(body).weights_T.tolist() == [1, 1]
    else:
        assert fields_of(lambda: request_of(body)) == [f"samples[0].loss_inputs.{name}.dtype"]


def test_integer_type_of_advantages_is_refused() -> None:
    body = grpo(sample([1, 2], [2, 3], **INPUTS))
    body["samples"][0]["loss_inputs"]["grpo_inputs"]["advantages"]["dtype"] = "D_TYPE_INT64"
    assert fields_of(lambda: request_of(body)) == ["samples[0].loss_inputs.grpo_inputs.advantages.dtype"]


def test_bfloat16_numbers_are_rounded_and_must_fit() -> None:
    body = grpo(sample([1, 2], [2, 3], advantages=[1.0, 1.0], generator_logprobs=[-1.2, -0.8]))
    logprobs = body["samples"][0]["loss_inputs"]["grpo_inputs"]["generator_logprobs"]
    logprobs["dtype"] = "D_TYPE_BFLOAT16"
    packed = request_of(body).generator_logprobs_T
    assert packed is not None
    assert packed.tolist() == [-1.203125, -0.80078125]
    logprobs["data"] = [0.0, -3.4e38]
    assert fields_of(lambda: request_of(body)) == ["samples[0].loss_inputs.grpo_inputs.generator_logprobs.data[1]"]


@pytest.mark.parametrize("mask", [[0, 2], [0, -1], [0, 0.5], [0, True]])
def test_a_mask_holds_zeros_and_ones_only(mask: list[Any]) -> None:
    body = cross_entropy(sample([1, 2], [2, 3], mask))
    assert fields_of(lambda: request_of(body)) == ["samples[0].loss_inputs.loss_mask.data[1]"]


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        (sample([1, 64]), "samples[1].model_input.chunks[0].encoded_text.tokens[1]"),
        (sample([1, 2], [3, 64]), "samples[1].loss_inputs.target_tokens.data[1]"),
        (sample([1, 2], [3, -100]), "samples[1].loss_inputs.target_tokens.data[1]"),
        (sample([1] * 9), "samples[1].model_input.chunks"),
        (sample([]), "samples[1].model_input.chunks"),
        ({"model_input": {"chunks": []}, "loss_inputs": {}}, "samples[1].model_input.chunks"),
        ({"model_input": {"chunks": [{"encoded_text": {"tokens": [1]}}]}}, "samples[1].loss_inputs"),
    ],
)
def test_what_the_model_cannot_read_is_named_by_sample_and_index(bad: dict[str, Any], field: str) -> None:
    assert fields_of(lambda: request_of(cross_entropy(sample([1] * 8), bad))) == [field]


def test_the_number_of_samples_is_limited_and_the_limit_stated() -> None:
    body = cross_entropy(*[sample([1, 2])] * 3)
    assert len(request_of(body, Limits(max_samples_per_call=3)).offsets) == 4
    (problem,) = problems_of(lambda: request_of(body, Limits(max_samples_per_call=2)))
    assert (problem.field, "limit of 2" in problem.message) == ("samples", True)


def test_no_samples_at_all_is_refused() -> None:
    assert fields_of(lambda: request_of(cross_entropy())) == ["samples"]
