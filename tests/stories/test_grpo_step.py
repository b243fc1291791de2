"""A researcher's loop over REST: sample, train on what was sampled, step, sample again."""

import httpx
import pytest

from tests.stories.client import Session, sample_body, scored, step_body, train_body, whole

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


def loop(session: Session, *, wait: bool) -> list[dict[str, object]]:
    """Two rounds of training and a sample, each waited for or all sent at once."""
    data = [whole([1, 2, 3, 4, 5]), whole([9, 8, 7])]
    bodies = [
        ("forward-backward", train_body(data, "LOSS_TYPE_CROSS_ENTROPY")),
        ("optim-step", step_body(0.05)),
        ("forward-backward", train_body(data[:1], "LOSS_TYPE_CROSS_ENTROPY")),
        ("optim-step", step_body(0.02)),
        ("sample", sample_body(QUESTION, 2, seed=5, max_tokens=8)),
    ]
    if wait:
        return [session.result(session.submit(kind, body)) for kind, body in bodies]
    paths = [session.submit(kind, body) for kind, body in bodies]
    return [session.result(path) for path in paths]


def test_operations_sent_without_waiting_give_what_waiting_gives(http: httpx.Client) -> None:
    waited, sent = Session(http, dropout=0), Session(http, dropout=0)
    # Fresh adapters start from seeds of their own, so both sessions first lose theirs: with B = 0
    # the base model answers, and the first step moves B alone by the learning rate.
    one, other = loop(waited, wait=True), loop(sent, wait=False)
    assert [result["step"] for result in one if "step" in result] == [1, 2]
    assert [result["step"] for result in other if "step" in result] == [1, 2]
    assert one[0]["loss"] == pytest.approx(other[0]["loss"], abs=1e-6)
    assert waited.read()["step"] == sent.read()["step"] == 2


def test_sessions_with_different_losses_at_the_same_time_keep_their_own(http: httpx.Client) -> None:
    grpo, sft = Session(http), Session(http, dropout=0)
    (sequence,) = grpo.sample(QUESTION, max_tokens=5)
    tokens = QUESTION + sequence["tokens"]
    path = sft.submit("forward-backward", train_body([whole(tokens)], "LOSS_TYPE_CROSS_ENTROPY"))
    assert grpo.train([scored(QUESTION, sequence, 1.0)])["loss"] == pytest.approx(-1.0, abs=1e-5)
    logprobs = sft.logprobs(tokens)
    assert sft.result(path)["loss"] == pytest.approx(-sum(logprobs) / len(logprobs), abs=1e-5)
