"""A researcher's loop over REST: sample, train on what was sampled, step, sample again."""

import httpx
import pytest

from testing.bodies import sample_body, scored, step_body, train_body, whole
from tests.stories.client import Session

QUESTION = [10, 20, 30, 40]


@pytest.mark.parametrize("params", [{"temperature": 0.5}, {"temperature": 0}, {"top_k": 2}, {"top_p": 0.5}, {}])
def test_the_first_ratio_is_one_however_the_tokens_were_drawn(http: httpx.Client, params: dict[str, float]) -> None:
    session = Session(http)
    sequences = session.sample(QUESTION, 4, max_tokens=6, **params)
    trained = session.train([scored(QUESTION, sequence, 1.0) for sequence in sequences])
    assert trained["loss"] == pytest.approx(-1.0, abs=1e-5)
    assert trained["metrics"]["loss/ratio/max"] == pytest.approx(1.0, abs=1e-4)
    assert trained["metrics"]["loss/kl_policy/mean"] == pytest.approx(0.0, abs=1e-5)
    assert trained["metrics"]["loss/clip/high_fraction"] == 0.0
    assert trained["metrics"]["valid_tokens:sum"] == sum(len(sequence["tokens"]) for sequence in sequences)


def test_a_step_makes_rewarded_tokens_likelier_and_the_next_sample_sees_it(http: httpx.Client) -> None:
    session = Session(http, dropout=0)
    (before,) = session.sample(QUESTION, temperature=0, max_tokens=6)
    session.train([scored(QUESTION, before, 1.0)])
    stepped = session.step(0.05)
    assert stepped["step"] == 1
    assert stepped["metrics"]["grad_norm"] > 0
    assert stepped["metrics"]["update_norm"] > 0
    assert session.read()["step"] == 1
    (after,) = session.sample(QUESTION, temperature=0, max_tokens=6)
    trained = session.train([scored(QUESTION, after, 1.0)])
    assert trained["loss"] == pytest.approx(-1.0, abs=1e-4), "the sample was drawn from the new weights"
    rescored = session.train([scored(QUESTION, before, 1.0)])
    assert rescored["metrics"]["loss/kl_policy/mean"] < 0, "what was rewarded became likelier"


def test_operations_sent_without_waiting_take_effect_in_their_order(http: httpx.Client) -> None:
    """Each loss is that of the weights before it, and the sample that of the weights at the end: a text that is
    taught in small steps becomes likelier with each, until greedy sampling gives it back."""
    session, text = Session(http, dropout=0, rank=16), [40, 80, 120, 160, 200, 240]
    before = session.submit("sample", sample_body(text[:2], temperature=0, max_tokens=4))
    losses = []
    for _ in range(25):
        losses.append(session.submit("forward-backward", train_body([whole(text)], "LOSS_TYPE_CROSS_ENTROPY")))
        session.submit("optim-step", step_body(0.01, weight_decay=0))
    after = session.submit("sample", sample_body(text[:2], temperature=0, max_tokens=4))
    values = [session.result(path)["loss"] for path in losses]
    assert values[1] < values[0]
    assert values[-1] < 0.05 * values[0]
    assert session.result(before)["sequences"][0]["tokens"] != text[2:]
    assert session.result(after)["sequences"][0]["tokens"] == text[2:]
    assert session.read()["step"] == 25


def test_sessions_with_different_losses_at_the_same_time_keep_their_own(http: httpx.Client) -> None:
    grpo, sft = Session(http), Session(http, dropout=0)
    (sequence,) = grpo.sample(QUESTION, max_tokens=5)
    tokens = QUESTION + sequence["tokens"]
    path = sft.submit("forward-backward", train_body([whole(tokens)], "LOSS_TYPE_CROSS_ENTROPY"))
    assert grpo.train([scored(QUESTION, sequence, 1.0)])["loss"] == pytest.approx(-1.0, abs=1e-5)
    logprobs = sft.logprobs(tokens)
    assert sft.result(path)["loss"] == pytest.approx(-sum(logprobs) / len(logprobs), abs=1e-5)
