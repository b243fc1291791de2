"""Tinker scripts through the SDK's bridge, with genuine tinker types: supervised, reinforcement, custom losses."""

from collections.abc import Iterator
from typing import Any

import pytest
import together.post_training.tinker as tinker
import torch

from testing.tiny_model import tiny_tokenizer

SEQUENCE = [1, 4, 9, 16, 25, 36]
CONTEXT = 512
# Characters that are part of several tokens.
MERGED = "theinaEND "
STEP = tinker.AdamParams(learning_rate=1e-2)


@pytest.fixture
def service(base_url: str) -> tinker.ServiceClient:
    return tinker.ServiceClient(base_url=base_url, api_key="any")


@pytest.fixture
def training(service: tinker.ServiceClient) -> Iterator[tinker.TrainingClient]:
    with service.create_lora_training_client("tiny", rank=4, seed=1, train_unembed=False) as client:
        yield client


def datum(sequence: list[int], **inputs: Any) -> Any:
    return tinker.Datum(
        model_input=tinker.ModelInput.from_ints(sequence[:-1]),
        loss_fn_inputs={"target_tokens": sequence[1:], **inputs},
    )


def supervised_steps(client: tinker.TrainingClient, steps: int) -> list[float]:
    """As a supervised loop does it: both futures are submitted, then collected."""
    losses = []
    for _ in range(steps):
        forward = client.forward_backward([datum(SEQUENCE, weights=[1.0] * 5)], "cross_entropy")
        step = client.optim_step(STEP)
        losses.append(forward.result().metrics["loss:sum"])
        step.result()
    return losses


def scored_loss(client: tinker.TrainingClient) -> float:
    """Without dropout, which training has."""
    output = client.forward([datum(SEQUENCE, weights=[1.0] * 5)], "cross_entropy").result()
    return float(output.metrics["loss:sum"])


def test_a_supervised_loop_learns_saves_and_resumes(
    service: tinker.ServiceClient, training: tinker.TrainingClient
) -> None:
    losses = supervised_steps(training, 4)
    assert losses == sorted(losses, reverse=True)
    path = training.save_state("step-4").result().path
    assert training.save_weights_for_sampler("final").result().path != path
    reached = scored_loss(training)
    for resume in (
        service.create_training_client_from_state_with_optimizer,
        service.create_training_client_from_state,
    ):
        with resume(path) as resumed:
            assert scored_loss(resumed) == reached
            supervised_steps(resumed, 1)
            assert scored_loss(resumed) != reached


def test_a_reinforcement_loop_makes_the_rewarded_token_likelier(training: tinker.TrainingClient) -> None:
    prompt, rewards = [3, 1, 4], []
    for iteration in range(4):
        sampler = training.save_weights_and_get_sampling_client()
        params = tinker.SamplingParams(max_tokens=4, temperature=1.0, seed=iteration)
        sequences = sampler.sample(tinker.ModelInput.from_ints(prompt), 16, params).result().sequences
        scores = [sum(token < 128 for token in each.tokens) / len(each.tokens) for each in sequences]
        rewards.append(sum(scores) / len(scores))
        batch = []
        for each, score in zip(sequences, scores, strict=True):
            before, count = len(prompt) - 1, len(each.tokens)
            batch.append(
                datum(
                    [*prompt, *each.tokens],
                    logprobs=[0.0] * before + list(each.logprobs or []),
                    advantages=[0.0] * before + [score - rewards[-1]] * count,
                )
            )
        training.forward_backward(batch, "importance_sampling").result()
        training.optim_step(tinker.AdamParams(learning_rate=3e-2)).result()
    assert rewards[-1] > rewards[0]


def test_a_custom_loss_is_the_built_in_one_when_it_says_the_same(training: tinker.TrainingClient) -> None:
    def negative_logprobs(_: list[Any], logprobs: list[torch.Tensor]) -> tuple[torch.Tensor, dict[str, float]]:
        loss = -logprobs[0].sum()
        return loss, {"own": float(loss.detach())}

    output = training.forward_backward_custom([datum(SEQUENCE)], negative_logprobs).result()
    before = scored_loss(training)
    assert output.metrics["own"] == pytest.approx(before, rel=1e-6)
    training.optim_step(STEP).result()
    assert scored_loss(training) < before


def test_a_loss_over_pairs_moves_them_apart_though_its_gradients_cancel_out(training: tinker.TrainingClient) -> None:
    def preference(_: list[Any], logprobs: list[torch.Tensor]) -> tuple[torch.Tensor, dict[str, float]]:
        margin = logprobs[0].sum() - logprobs[1].sum()
        return -torch.nn.functional.logsigmoid(margin), {"margin": float(margin.detach())}

    pair, margins = [datum(SEQUENCE), datum(SEQUENCE[::-1])], []
    for _ in range(3):
        margins.append(training.forward_backward_custom(pair, preference).result().metrics["margin"])
        training.optim_step(STEP).result()
    assert margins == sorted(margins)


def test_prompts_are_scored_as_tinker_does(training: tinker.TrainingClient) -> None:
    sampler = training.save_weights_and_get_sampling_client()
    logprobs = sampler.compute_logprobs(tinker.ModelInput.from_ints(SEQUENCE)).result()
    forward = training.forward([datum(SEQUENCE, weights=[1.0] * 5)], "cross_entropy").result()
    assert logprobs[0] is None
    assert logprobs[1:] == pytest.approx(forward.loss_fn_outputs[0]["logprobs"].tolist(), rel=1e-4)


def test_a_prompt_that_fills_the_context_is_scored(training: tinker.TrainingClient) -> None:
    sequence = [number % 250 for number in range(CONTEXT)]
    sampler = training.save_weights_and_get_sampling_client()
    logprobs = sampler.compute_logprobs(tinker.ModelInput.from_ints(sequence)).result()
    forward = training.forward([datum(sequence, weights=[1.0] * (CONTEXT - 1))], "cross_entropy").result()
    assert logprobs[0] is None
    assert logprobs[1:] == pytest.approx(forward.loss_fn_outputs[0]["logprobs"].tolist(), rel=1e-4)


def test_without_max_tokens_a_completion_has_the_room_that_is_left(training: tinker.TrainingClient) -> None:
    prompt = tinker.ModelInput.from_ints([7] * (CONTEXT - 5))
    sampler = training.save_weights_and_get_sampling_client()
    (sequence,) = sampler.sample(prompt, 1, tinker.SamplingParams(seed=1)).result().sequences
    assert len(sequence.tokens) == 5 or sequence.stop_reason == "stop"
    fresh = sampler.sample(tinker.ModelInput.from_ints([7]), 4, tinker.SamplingParams(seed=1)).result().sequences
    assert max(len(each.tokens) for each in fresh) <= 100


def test_the_bridge_drops_token_ids_to_stop_at_and_their_text_does_instead(training: tinker.TrainingClient) -> None:
    prompt, tokenizer = tinker.ModelInput.from_ints([3, 1, 4]), tiny_tokenizer()
    sampler = training.save_weights_and_get_sampling_client()

    def sampled(stop: list[int] | list[str] | None) -> list[int]:
        params = tinker.SamplingParams(max_tokens=60, temperature=1.0, seed=5, stop=stop)
        (sequence,) = sampler.sample(prompt, 1, params).result().sequences
        return list(sequence.tokens)

    tokens = sampled(None)
    text = next(text for text in map(tokenizer.decode, tokens[5:]) if text.isascii() and text not in MERGED)
    (token,) = tokenizer.encode(text)
    with pytest.warns(UserWarning, match="takes strings only"):
        assert sampled([token]) == tokens, "the page says what to do instead"
    assert sampled([text]) == tokens[: tokens.index(token) + 1]
