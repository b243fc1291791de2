"""Sampling on whole tiny models, against plain transformers."""

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from domain.sample import Sequence, StopReason
from domain.session import LoraConfig
from testing.tiny_model import make_tiny_model
from tests.engine.calls import (
    forward_backward,
    logprobs_of,
    optim_step,
    packed,
    random_sample,
    random_tokens,
    sample,
    sample_request,
)
from tests.engine.conftest import StartEngine
from workers.engine.engine import Engine

FAMILIES: dict[str, dict[str, Any]] = {
    "llama": {},
    "qwen2": {"tied": True},
    "qwen3": {"head_dim": 16},
    "mistral": {"sliding_window": 6},
    "gemma3_text": {
        "head_dim": 8,
        "sliding_window": 5,
        "layers": 3,
        "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
    },
}
PROMPTS = [random_tokens(seed, length) for seed, length in enumerate([1, 5, 60])]


def same(ours: Sequence, other: Sequence) -> None:
    assert ours.tokens.tolist() == other.tokens.tolist()
    np.testing.assert_allclose(ours.logprobs, other.logprobs, atol=1e-5)
    assert ours.stop_reason == other.stop_reason


def train_a_little(engine: Engine, session: str) -> None:
    """So that B is not zero and the session differs from the base model."""
    for seed in range(3):
        forward_backward(engine, packed([random_sample(seed, 12)]), session, seed)
        optim_step(engine, session, learning_rate=0.02)


@pytest.mark.parametrize("family", FAMILIES)
def test_greedy_tokens_and_logprobs_equal_those_of_transformers(
    family: str, tmp_path: Path, start_engine: StartEngine
) -> None:
    directory = make_tiny_model(tmp_path, family=family, **FAMILIES[family])
    engine = start_engine(micro_batch_tokens=32)
    engine.create_adapter("s", directory, LoraConfig(), 0).result()
    ours = sample(engine, PROMPTS, temperature=0.0, max_tokens=16)
    model = AutoModelForCausalLM.from_pretrained(directory)
    for prompt, sequence in zip(PROMPTS, ours, strict=True):
        tokens = torch.from_numpy(np.concatenate([prompt, sequence.tokens])).long()[None]
        with torch.no_grad():
            logprobs_TV = torch.log_softmax(model(tokens).logits[0].float(), -1)[len(prompt) - 1 : -1]
        assert sequence.tokens.tolist() == logprobs_TV.argmax(-1).tolist()
        np.testing.assert_allclose(sequence.logprobs, logprobs_TV.amax(-1).numpy(), atol=2e-5)


def test_a_ragged_batch_gives_each_prompt_what_it_gets_alone(engine: Engine) -> None:
    for ours, prompt in zip(sample(engine, PROMPTS, temperature=0.0, max_tokens=16), PROMPTS, strict=True):
        same(ours, sample(engine, [prompt], temperature=0.0, max_tokens=16)[0])


def test_a_request_is_answered_the_same_alone_and_beside_many_sessions(
    start_engine: StartEngine, tiny: Path, kernels: str
) -> None:
    asked: dict[str, Any] = {"num_samples": 3, "seed": 5, "max_tokens": 20, "top_p": 0.9}
    engine = start_engine(max_batch_sequences=7, micro_batch_tokens=80, kernels=kernels)
    for session, rank in [("s", 4), ("t", 8), ("u", 2)]:
        engine.create_adapter(session, tiny, LoraConfig(rank=rank), seed=rank).result()
        train_a_little(engine, session)
    alone = {session: sample(engine, PROMPTS, session, **asked) for session in "stu"}
    assert alone["s"][0].tokens.tolist() != alone["t"][0].tokens.tolist()

    futures = [(session, engine.sample(session, sample_request(PROMPTS, **asked))) for session in "stustu"]
    for session, future in futures:
        for ours, expected in zip(future.result().sequences, alone[session], strict=True):
            same(ours, expected)


def test_a_seed_repeats_its_sequences_which_differ_among_themselves(engine: Engine) -> None:
    first, again, other = (sample(engine, PROMPTS[:2], num_samples=4, seed=seed, max_tokens=12) for seed in (0, 0, 1))
    for ours, expected in zip(first, again, strict=True):
        same(ours, expected)
    assert len({tuple(sequence.tokens) for sequence in first + other}) == 16


def test_a_sequence_does_not_depend_on_how_many_are_asked_for(engine: Engine) -> None:
    many, one = (sample(engine, PROMPTS[:1], num_samples=n, seed=3, max_tokens=8) for n in (70, 1))
    same(many[0], one[0])
    assert len(many) == 70


@pytest.mark.parametrize("params", [{"temperature": 0.5}, {"temperature": 0.0}, {"top_k": 3, "top_p": 0.8}, {}])
def test_the_trainer_computes_the_logprobs_that_the_sampler_reported(engine: Engine, params: dict[str, Any]) -> None:
    train_a_little(engine, "s")
    prompts = PROMPTS[1:]
    sequences = sample(engine, prompts, max_tokens=20, **params)
    whole = [np.concatenate([prompt, one.tokens]) for prompt, one in zip(prompts, sequences, strict=True)]
    trained = logprobs_of(engine, [(tokens[:-1], tokens[1:]) for tokens in whole])
    for prompt, sequence, logprobs in zip(prompts, sequences, trained, strict=True):
        np.testing.assert_allclose(sequence.logprobs, logprobs[len(prompt) - 1 :], atol=1e-5)


def test_sampling_sees_the_weights_of_the_last_step(engine: Engine) -> None:
    before = sample(engine, PROMPTS[1:2], temperature=0.0, max_tokens=16)[0]
    forward_backward(engine, packed([random_sample(0, 12)]))
    optim_step(engine, learning_rate=0.05)
    after = sample(engine, PROMPTS[1:2], temperature=0.0, max_tokens=16)[0]
    assert after.logprobs.tolist() != before.logprobs.tolist()
    tokens = np.concatenate([PROMPTS[1], after.tokens])
    expected = logprobs_of(engine, [(tokens[:-1], tokens[1:])])[0][len(PROMPTS[1]) - 1 :]
    np.testing.assert_allclose(after.logprobs, expected, atol=1e-5)


def test_dropout_never_acts_on_samples(start_engine: StartEngine, tiny: Path) -> None:
    engine = start_engine()
    engine.create_adapter("s", tiny, LoraConfig(dropout=0.5), 0).result()
    train_a_little(engine, "s")
    first, second = (sample(engine, PROMPTS[:1], temperature=0.0, max_tokens=20)[0] for _ in range(2))
    same(first, second)


def test_every_end_token_of_the_generation_config_and_the_tokenizer_stops(
    tmp_path: Path, start_engine: StartEngine
) -> None:
    # All logits are 0, so greedy always draws token 0, and each uniform picks any token as likely.
    directory = make_tiny_model(tmp_path, zero_head=True, eos=(10, 20))
    engine = start_engine()
    engine.create_adapter("s", directory, LoraConfig(), 0).result()
    sequences = sample(engine, [[1]], num_samples=200, max_tokens=400)
    ends = {10, 20, 263}
    assert {sequence.tokens[-1] for sequence in sequences if sequence.stop_reason is StopReason.STOP} == ends
    for sequence in sequences:
        assert not ends & set(sequence.tokens[:-1].tolist())
        assert (sequence.stop_reason is StopReason.STOP) == (sequence.tokens[-1] in ends)
        assert len(sequence.tokens) == len(sequence.logprobs)
        np.testing.assert_allclose(sequence.logprobs, -np.log(266), rtol=1e-5)


@pytest.mark.parametrize(("end", "reason"), [(0, StopReason.STOP), (5, StopReason.LENGTH)])
def test_an_end_token_on_the_last_allowed_place_is_a_stop(
    tmp_path: Path, start_engine: StartEngine, end: int, reason: StopReason
) -> None:
    directory = make_tiny_model(tmp_path, zero_head=True, eos=(end,))
    engine = start_engine()
    engine.create_adapter("s", directory, LoraConfig(), 0).result()
    (sequence,) = sample(engine, [[1, 2]], temperature=0.0, max_tokens=1)
    assert sequence.tokens.tolist() == [0]
    assert sequence.stop_reason is reason


def test_a_stop_string_ends_the_completion_at_the_token_that_completes_it(engine: Engine, tiny: Path) -> None:
    greedy: dict[str, Any] = {"temperature": 0.0, "max_tokens": 24}
    prompt = random_tokens(11, 4)
    whole = sample(engine, [prompt], **greedy)[0]
    tokenizer = AutoTokenizer.from_pretrained(tiny)
    texts = [tokenizer.decode(whole.tokens[:count].tolist()) for count in range(25)]
    stop = next(text for text in (texts[count][-2:] for count in range(2, 20)) if text.isascii() and len(text) == 2)
    count = next(count for count, text in enumerate(texts) if stop in text)
    (stopped,) = sample(engine, [prompt], stop=("never", stop), **greedy)
    assert stopped.tokens.tolist() == whole.tokens[:count].tolist()
    assert stopped.stop_reason is StopReason.STOP


def test_a_stop_token_ends_a_completion_as_an_end_token_does(engine: Engine) -> None:
    (whole,) = sample(engine, PROMPTS[1:2], temperature=0.0, max_tokens=16)
    place = whole.tokens.tolist().index(whole.tokens[7])
    (stopped,) = sample(
        engine, PROMPTS[1:2], temperature=0.0, max_tokens=16, stop_token_ids=(300, int(whole.tokens[7]))
    )
    assert stopped.tokens.tolist() == whole.tokens[: place + 1].tolist()
    assert stopped.stop_reason is StopReason.STOP
    (other,) = sample(engine, PROMPTS[1:2], temperature=0.0, max_tokens=16)
    same(other, whole)


def test_a_completion_ends_with_the_context_however_many_tokens_it_may_have(engine: Engine) -> None:
    request = msgspec.structs.replace(sample_request(PROMPTS, num_samples=2, temperature=0.0), max_length=60)
    sequences = engine.sample("s", request).result().sequences
    assert [len(sequence.tokens) for sequence in sequences] == [59, 59, 55, 55, 0, 0]
    assert {sequence.stop_reason for sequence in sequences} == {StopReason.LENGTH}
    for ours, whole in zip(sequences[::2], sample(engine, PROMPTS[:2], temperature=0.0), strict=False):
        assert ours.tokens.tolist() == whole.tokens[: len(ours.tokens)].tolist()


def test_no_tokens_at_all_are_an_answer_at_once(engine: Engine) -> None:
    for sequence in sample(engine, PROMPTS, max_tokens=0, stop=("a",)):
        assert (len(sequence.tokens), len(sequence.logprobs), sequence.stop_reason) == (0, 0, StopReason.LENGTH)
    assert len(sample(engine, PROMPTS, max_tokens=2)) == 3, "the engine goes on"
