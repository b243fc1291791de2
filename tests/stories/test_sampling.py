"""What a sample answers: reproducible, independent of its neighbours, stopped where it was asked to."""

import httpx
import pytest

from testing.bodies import sample_body, whole
from testing.tiny_model import TOKENIZER_SIZE
from tests.stories.client import Session

QUESTION = [10, 20, 30]


@pytest.fixture(scope="module")
def session(http: httpx.Client) -> Session:
    return Session(http)


def test_a_seed_reproduces_the_tokens_and_its_sequences_differ(session: Session) -> None:
    first = session.sample(QUESTION, 3, max_tokens=12, seed=0)
    assert session.sample(QUESTION, 3, max_tokens=12, seed=0) == first
    assert len({tuple(sequence["tokens"]) for sequence in first}) == 3
    assert session.sample(QUESTION, 3, max_tokens=12, seed=1) != first


def test_without_a_seed_no_two_samples_are_alike(session: Session) -> None:
    assert session.sample(QUESTION, max_tokens=12) != session.sample(QUESTION, max_tokens=12)


def test_prompts_of_any_length_sample_the_same_alone_and_beside_others(session: Session) -> None:
    prompts = [[7], [1, 2, 3, 4, 5], list(range(60))]
    alone = [session.sample(prompt, max_tokens=16, seed=3) for prompt in prompts]
    paths = [session.submit("sample", sample_body(prompt, 1, max_tokens=16, seed=3)) for prompt in prompts * 4]
    for number, path in enumerate(paths):
        (together,), (expected,) = session.result(path)["sequences"], alone[number % 3]
        assert together["tokens"] == expected["tokens"]
        assert together["logprobs"] == pytest.approx(expected["logprobs"], abs=1e-5)


def test_temperature_zero_and_top_k_one_are_greedy(session: Session) -> None:
    (greedy,) = session.sample(QUESTION, temperature=0, max_tokens=8)
    for params in ({"top_k": 1}, {"top_p": 1e-6}, {"temperature": 1e-4}):
        (sequence,) = session.sample(QUESTION, max_tokens=8, **params)
        assert sequence["tokens"] == greedy["tokens"]
        assert sequence["logprobs"] == pytest.approx(greedy["logprobs"], abs=1e-5)


@pytest.mark.parametrize("top_k", [-1, 0, TOKENIZER_SIZE, TOKENIZER_SIZE + 1])
def test_top_k_beyond_the_vocabulary_is_off(session: Session, top_k: int) -> None:
    assert session.sample(QUESTION, max_tokens=8, seed=2, top_k=top_k) == session.sample(QUESTION, max_tokens=8, seed=2)


def test_each_sequence_has_one_logprob_per_token_and_its_own_stop_reason(session: Session) -> None:
    for sequence in session.sample(QUESTION, 8, max_tokens=20, seed=4):
        assert len(sequence["tokens"]) == len(sequence["logprobs"]) <= 20
        assert all(logprob <= 0 for logprob in sequence["logprobs"])
        ended = len(sequence["tokens"]) < 20
        assert sequence["stop_reason"] == "stop" if ended else sequence["stop_reason"] in ("stop", "length")


def test_samples_on_other_sessions_do_not_change_a_sample(http: httpx.Client, session: Session) -> None:
    expected = session.sample(QUESTION, 2, max_tokens=12, seed=9)
    other = Session(http, rank=4)
    noise = [other.submit("sample", sample_body([5] * 9, 8, max_tokens=24)) for _ in range(4)]
    assert session.sample(QUESTION, 2, max_tokens=12, seed=9) == [
        {**sequence, "logprobs": pytest.approx(sequence["logprobs"], abs=1e-5)} for sequence in expected
    ]
    for path in noise:
        other.result(path)


def test_without_max_tokens_a_completion_ends_where_the_context_does(session: Session) -> None:
    prompt = [7] * 500
    body = {"prompt": {"chunks": [{"encoded_text": {"tokens": prompt}}]}, "sampling_params": {"seed": 1}}
    (sequence,) = session.result(session.submit("sample", body))["sequences"]
    assert len(sequence["tokens"]) == 12 or sequence["stop_reason"] == "stop"
    assert session.sample(prompt, max_tokens=12, seed=1) == [sequence]


def test_a_prompt_that_fills_the_context_is_scored_as_training_scores_it(session: Session) -> None:
    prompt = [number % 250 for number in range(512)]
    scored = session.result(session.submit("sample", sample_body(prompt, max_tokens=0)))
    assert scored["sequences"] == [{"tokens": [], "logprobs": [], "stop_reason": "length"}]
    logprobs = scored["prompt_logprobs"]
    assert (len(logprobs), logprobs[0]) == (512, 0.0)
    trained = session.train([whole(prompt)], "LOSS_TYPE_CROSS_ENTROPY")
    assert trained["loss"] == pytest.approx(-sum(logprobs) / 511, rel=1e-5)


def test_a_completion_ends_with_a_stop_token(session: Session) -> None:
    (longest,) = session.sample(QUESTION, max_tokens=12, temperature=0)
    stop = longest["tokens"][5]
    place = longest["tokens"].index(stop)
    (stopped,) = session.sample(QUESTION, max_tokens=12, temperature=0, stop_token_ids=[stop])
    assert stopped["tokens"] == longest["tokens"][: place + 1]
    assert stopped["stop_reason"] == "stop"
