"""Every operation through the SDK's high-level clients."""

import math
from typing import Any

import numpy as np
import pytest
from together import BadRequestError, Together
from together.post_training import ModelResourcesClient, SessionClient
from together.post_training._arrays import coerce_sample

from tests.together.bodies import PROMPT, loss, scored, supervised, tokens

CROSS_ENTROPY = loss("LOSS_TYPE_CROSS_ENTROPY")
POLICY = [
    (loss("LOSS_TYPE_IMPORTANCE_SAMPLING"), "sum"),
    (loss("LOSS_TYPE_PPO", clip_low_threshold=0.9), "sum"),
    (loss("LOSS_TYPE_DPPO", delta_low=0.1), "sum"),
    (loss("LOSS_TYPE_GRPO", agg_type="GRPO_LOSS_AGGREGATION_TYPE_TOKEN_MEAN"), "mean"),
    (
        loss(
            "LOSS_TYPE_GRPO",
            agg_type="GRPO_LOSS_AGGREGATION_TYPE_SEQUENCE_MEAN",
            ratio_type="GRPO_LOSS_RATIO_TYPE_SEQUENCE",
        ),
        "mean",
    ),
]


@pytest.fixture
def sampled(session: SessionClient) -> Any:
    (sequence,) = session.generator.sample(tokens(*PROMPT), 1, {"max_tokens": 6, "seed": 3}).sequences
    return sequence


@pytest.mark.parametrize(("config", "how"), POLICY)
def test_on_policy_a_policy_loss_is_minus_the_advantage(
    session: SessionClient, sampled: Any, config: Any, how: str
) -> None:
    result = session.trainer.forward_backward(samples=[scored(PROMPT, sampled, 2.0)], loss=config)
    assert result.loss == pytest.approx(-2.0 * (len(sampled.tokens) if how == "sum" else 1), rel=1e-4)
    assert result.loss_fn_outputs is None


def test_cispo_and_dro_weigh_the_logprobs(session: SessionClient, sampled: Any) -> None:
    total = sum(sampled.logprobs)
    for config in (loss("LOSS_TYPE_CISPO"), loss("LOSS_TYPE_DRO", beta=0.5)):
        result = session.trainer.forward_backward(samples=[scored(PROMPT, sampled, 2.0)], loss=config)
        assert result.loss == pytest.approx(-2.0 * total, rel=1e-4)


def test_grpo_with_a_reference_adds_the_kl(session: SessionClient, sampled: Any) -> None:
    shifted = [value + 1.0 for value in sampled.logprobs]
    sample = scored(PROMPT, sampled, 0.0, reference_logprobs=shifted)
    config = loss("LOSS_TYPE_GRPO", beta=0.5, agg_type="GRPO_LOSS_AGGREGATION_TYPE_TOKEN_MEAN")
    result = session.trainer.forward_backward(samples=[sample], loss=config)
    assert result.loss == pytest.approx(0.5 * (math.e - 2), rel=1e-3)


def test_cross_entropy_is_a_sum_over_fractional_weights_and_returns_masked_logprobs(session: SessionClient) -> None:
    scores = session.generator.compute_logprobs(tokens(*PROMPT))
    result = session.trainer.forward(
        samples=[supervised(PROMPT, [1.0, 0.0, 0.25])], loss=CROSS_ENTROPY, return_loss_fn_outputs=True
    )
    assert result.loss == pytest.approx(-scores[1] - 0.25 * scores[3], rel=1e-5)
    (outputs,) = result.loss_fn_outputs or []
    assert outputs.tensors["logprobs"].data == pytest.approx([scores[1], 0.0, scores[3]], rel=1e-5)


def test_scoring_adds_no_gradient(session: SessionClient) -> None:
    session.trainer.forward(samples=[supervised(PROMPT)], loss=CROSS_ENTROPY)
    with pytest.raises(RuntimeError, match="INVALID_INPUT"):
        session.trainer.optim_step()


def test_gradients_of_ones_own_loss_train_like_the_built_in_one(resources: ModelResourcesClient) -> None:
    weights = [0.5, -1.0, 2.0]
    losses = []
    for own in (True, False):
        with resources.create_session(lora_config={"rank": 4, "seed": 11, "dropout": 0.0}) as session:
            if own:
                gradient = np.array([-weight for weight in weights], np.float32)
                session.trainer.custom_forward_backward(
                    samples=[supervised(PROMPT, [0.0] * 3)], gradients=[{"data": gradient, "dtype": "D_TYPE_FLOAT32"}]
                )
            else:
                session.trainer.forward_backward(samples=[supervised(PROMPT, weights)], loss=CROSS_ENTROPY)
            assert session.trainer.optim_step(adam_params={"learning_rate": 0.05}).step == 1
            losses.append(session.trainer.forward(samples=[supervised(PROMPT)], loss=CROSS_ENTROPY).loss)
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)


def test_many_prompts_are_sampled_in_order_and_scored(session: SessionClient) -> None:
    prompts = [tokens(*PROMPT), tokens(9), tokens(1, 2, 3)]
    results = session.generator.sample_batch(
        prompts, 2, {"max_tokens": 3, "seed": 5, "top_k": 40}, prompt_logprobs=True, topk_prompt_logprobs=2
    )
    assert [len(result.sequences) for result in results] == [2, 2, 2]
    assert [len(result.prompt_logprobs or []) for result in results] == [4, 1, 3]
    assert all((result.prompt_logprobs or [1])[0] == 0.0 for result in results)
    for result in results:
        (first, *rest) = result.topk_prompt_logprobs or []
        assert first.token_ids == []
        assert all(
            top.logprobs == sorted(top.logprobs or [], reverse=True) and len(top.token_ids or []) == 2 for top in rest
        )
    alone = session.generator.sample(prompts[0], 2, {"max_tokens": 3, "seed": 5, "top_k": 40})
    assert [each.tokens for each in alone.sequences] == [each.tokens for each in results[0].sequences]


def test_a_completion_ends_with_a_token_of_ones_own(session: SessionClient) -> None:
    params: Any = {"max_tokens": 20, "seed": 3}
    (whole,) = session.generator.sample(tokens(*PROMPT), 1, params).sequences
    stop = whole.tokens[4]
    params["stop_token_ids"] = [stop]
    (stopped,) = session.generator.sample(tokens(*PROMPT), 1, params).sequences
    assert stopped.tokens == whole.tokens[: whole.tokens.index(stop) + 1]
    assert stopped.stop_reason == "STOP_REASON_STOP"


def test_muon_steps_only_where_the_resources_are_made_for_it(base_url: str, session: SessionClient) -> None:
    with (
        ModelResourcesClient.create(
            base_url=base_url, api_key="any", base_model="tiny", optimizer_config={"muon": {}}
        ) as resources,
        resources.create_session() as muon,
    ):
        muon.trainer.forward_backward(samples=[supervised(PROMPT)], loss=CROSS_ENTROPY)
        before = muon.trainer.forward(samples=[supervised(PROMPT)], loss=CROSS_ENTROPY).loss
        assert muon.trainer.optim_step(muon_params={"learning_rate": 1e-2, "adam": {"beta1": 0.8}}).step == 1
        assert muon.trainer.forward(samples=[supervised(PROMPT)], loss=CROSS_ENTROPY).loss < before
        with pytest.raises(BadRequestError, match="adam_params"):
            muon.trainer.optim_step(adam_params={})
    with pytest.raises(BadRequestError, match="muon_params"):
        session.trainer.optim_step(muon_params={})


def test_large_bodies_and_results_go_apart(session: SessionClient) -> None:
    batch = [supervised([7] * 500)] * 90
    result = session.trainer.forward(samples=batch, loss=CROSS_ENTROPY, return_loss_fn_outputs=True)
    outputs = result.loss_fn_outputs or []
    assert [len(each.tensors["logprobs"].data) for each in outputs] == [499] * 90
    assert result.loss == pytest.approx(-sum(sum(each.tensors["logprobs"].data) for each in outputs), rel=1e-5)
    results = session.generator.sample_batch([tokens(*PROMPT)] * 90, 8, {"max_tokens": 20, "seed": 1})
    alone = session.generator.sample(tokens(*PROMPT), 8, {"max_tokens": 20, "seed": 1})
    assert [len(each.sequences) for each in results] == [8] * 90
    assert [each.tokens for each in results[0].sequences] == [each.tokens for each in alone.sequences]


def test_what_is_apart_is_named_in_the_answer(sdk: Together, session: SessionClient) -> None:
    api, home = sdk.post_training.operations, session.session_id
    batch: Any = [coerce_sample(supervised([7] * 500), "")] * 90
    scored = api.forward_backward(
        home, samples=batch, loss=CROSS_ENTROPY, forward_only=True, return_loss_fn_outputs=True, idempotency_key="f"
    )
    sampled = api.sample(
        home,
        model_inputs=[tokens(*PROMPT)] * 90,
        num_samples=8,
        sampling_params={"max_tokens": 20},
        idempotency_key="s",
    )
    read: Any
    for read, operation in ((api.retrieve_forward_backward, scored), (api.retrieve_sample, sampled)):
        while (ended := read(operation.id, session_id=home)).output is None:
            continue
        assert ended.output.payload_id == operation.id


@pytest.mark.parametrize(
    ("inputs", "config", "what"),
    [
        ({"advantages": [1.0] * 3}, CROSS_ENTROPY, "advantages"),
        ({}, loss("LOSS_TYPE_PPO"), "advantages"),
        ({"weights": [1.0] * 2}, CROSS_ENTROPY, "2 entries"),
        ({"target_tokens": [1, 2, 99999]}, CROSS_ENTROPY, "vocabulary"),
    ],
)
def test_what_a_loss_does_not_take_is_refused_by_name(
    base_url: str, session: SessionClient, inputs: Any, config: Any, what: str
) -> None:
    sample: Any = supervised(PROMPT)
    typed: Any = {
        name: {"data": values, "dtype": "int64" if name == "target_tokens" else "float32"}
        for name, values in {**sample["loss_fn_inputs"], **inputs}.items()
    }
    with Together(base_url=base_url, api_key="any") as sdk, pytest.raises(BadRequestError, match=what):
        sdk.post_training.operations.forward_backward(
            session.session_id,
            idempotency_key="k",
            loss=config,
            samples=[{"model_input": sample["model_input"], "loss_fn_inputs": typed}],
        )


def test_the_same_key_is_the_same_operation(base_url: str, session: SessionClient) -> None:
    with Together(base_url=base_url, api_key="any") as sdk:
        api = sdk.post_training.operations
        first, again = (
            api.weights_sync(session.session_id, weight_sync_type="WEIGHT_SYNC_TYPE_PIPELINE", idempotency_key="once")
            for _ in range(2)
        )
        assert first.id == again.id
