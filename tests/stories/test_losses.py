"""Losses whose values follow by hand from what is sent, without knowing the weights."""

import math
from collections.abc import Callable

import httpx
import pytest

from testing.bodies import Json, policy, scored, whole
from tests.stories.client import Session

QUESTION = [10, 20, 30]
UNIFORM = 256 + 7 + 3


@pytest.fixture(scope="module")
def session(http: httpx.Client) -> Session:
    return Session(http, dropout=0)


def sequence_of(session: Session, length: int) -> Json:
    """A sampled sequence with `length` tokens, whatever ends it."""
    (sequence,) = session.sample(QUESTION, max_tokens=length, temperature=2.0, seed=length)
    if len(sequence["tokens"]) == length:
        return sequence
    raise AssertionError("an end token came early; choose another seed")


@pytest.mark.parametrize(
    ("ratio", "advantage", "params", "loss"),
    [
        (1.5, 1.0, {}, -1.28),
        (1.5, -1.0, {}, 1.5),
        (0.5, 1.0, {}, -0.5),
        (0.5, -1.0, {}, 0.8),
        (1.5, 1.0, {"clip_low": 0.8, "clip_high": 1.28}, -1.5),
        (0.5, -1.0, {"clip_low": 0}, 1.0),
        (3.0, 2.0, {"clip_high": 0.5}, -3.0),
        (1.0, 7428.0, {}, -7428.0),
    ],
)
def test_the_ratio_is_clipped_on_the_side_that_the_advantage_says(
    session: Session, ratio: float, advantage: float, params: Json, loss: float
) -> None:
    sequence = sequence_of(session, 1)
    generator = [logprob - math.log(ratio) for logprob in sequence["logprobs"]]
    trained = session.train([scored(QUESTION, sequence, advantage, generator)], **params)
    assert trained["loss"] == pytest.approx(loss, rel=1e-4)
    assert trained["metrics"]["loss/ratio/mean"] == pytest.approx(ratio, rel=1e-4)


@pytest.mark.parametrize(
    ("loss", "params", "ratio", "advantage", "expected"),
    [
        ("IMPORTANCE_SAMPLING", {}, 1.5, 2.0, lambda _: -3.0),
        ("PPO", {}, 1.5, 2.0, lambda _: -2.4),
        ("PPO", {}, 0.5, -2.0, lambda _: 1.6),
        ("PPO", {"clip_high": 0.25}, 1.5, 2.0, lambda _: -2.5),
        ("CISPO", {}, 1.5, 2.0, lambda lp: -3.0 * lp),
        ("CISPO", {"clip_low": 0.25, "clip_high": 0.25}, 1.5, 2.0, lambda lp: -2.5 * lp),
        ("CISPO", {"clip_low": 0.25, "clip_high": 0.25}, 0.5, 2.0, lambda lp: -1.5 * lp),
        ("DRO", {"beta": 3}, 1.5, 2.0, lambda lp: -2.0 * lp + 1.5 * math.log(1.5) ** 2),
        ("DPPO", {}, 1.5, 2.0, lambda _: -3.0),
        ("DPPO", {"delta_high": 0}, 1.5, 2.0, lambda _: 0.0),
        ("DPPO", {"delta_low": 0}, 0.5, -2.0, lambda _: 0.0),
    ],
)
def test_each_policy_loss_is_a_sum_of_its_formula(
    session: Session, loss: str, params: Json, ratio: float, advantage: float, expected: Callable[[float], float]
) -> None:
    sequence = sequence_of(session, 3)
    generator = [logprob - math.log(ratio) for logprob in sequence["logprobs"]]
    sample = policy(scored(QUESTION, sequence, advantage, generator))
    trained = session.train([sample], f"LOSS_TYPE_{loss}", **params)
    assert trained["loss"] == pytest.approx(sum(map(expected, sequence["logprobs"])), rel=1e-4, abs=1e-6)


@pytest.mark.parametrize(("offset", "penalty"), [(1.0, 0.718282), (-1.0, 0.367879), (0.5, 0.148721), (-0.5, 0.106531)])
def test_the_kl_penalty_is_k3_of_reference_against_policy(session: Session, offset: float, penalty: float) -> None:
    sequence = sequence_of(session, 1)
    reference = [logprob + offset for logprob in sequence["logprobs"]]
    trained = session.train([scored(QUESTION, sequence, 0.0, reference=reference)], beta=0.5)
    assert trained["loss"] == pytest.approx(0.5 * penalty, abs=2e-5)
    assert trained["metrics"]["loss/kl_ref/mean"] == pytest.approx(penalty, abs=4e-5)


@pytest.mark.parametrize(
    ("agg_type", "loss"),
    [
        ("token_mean", (0.5 * 1 + 0.3 * 9) / 10),
        ("SEQUENCE_MEAN", 0.40),
        ("fixed_horizon", (0.5 * 1 + 0.3 * 9) / (2 * 1024)),
    ],
)
def test_each_aggregation_has_its_own_normaliser(session: Session, agg_type: str, loss: float) -> None:
    short, long = sequence_of(session, 1), sequence_of(session, 9)
    samples = [scored(QUESTION, short, -0.5), scored(QUESTION, long, -0.3)]
    for batch in (samples, samples[::-1]):
        assert session.train(batch, agg_type=agg_type)["loss"] == pytest.approx(loss, rel=1e-4)


def test_a_ragged_batch_is_the_token_mean_of_its_samples_in_any_order(session: Session) -> None:
    short, long = whole([1, 2, 3, 4]), whole([11, 12, 13, 14, 15, 16, 17, 18])

    def loss(*samples: Json) -> float:
        return float(session.train(list(samples), "LOSS_TYPE_CROSS_ENTROPY")["loss"])

    expected = (3 * loss(short) + 7 * loss(long)) / 10
    assert loss(short, long) == pytest.approx(expected, rel=1e-5)
    assert loss(long, short) == pytest.approx(expected, rel=1e-5)


def test_with_targets_of_its_own_entry_i_predicts_target_i(session: Session) -> None:
    tokens = [1, 2, 3, 4, 5]
    shifted = {
        "model_input": whole(tokens[:-1])["model_input"],
        "loss_inputs": {"target_tokens": {"data": tokens[1:], "dtype": "D_TYPE_INT64"}},
    }
    by_target = session.train([shifted], "LOSS_TYPE_CROSS_ENTROPY")["loss"]
    assert by_target == pytest.approx(session.train([whole(tokens)], "LOSS_TYPE_CROSS_ENTROPY")["loss"], rel=1e-6)


def test_nothing_trained_is_a_loss_of_zero_and_no_gradient(http: httpx.Client) -> None:
    session = Session(http)
    trained = session.train([whole([1, 2, 3], [0, 0, 0])], "LOSS_TYPE_CROSS_ENTROPY")
    assert trained["loss"] == 0.0
    assert all(math.isfinite(value) for value in trained["metrics"].values())
    assert session.step(0.1, weight_decay=0)["metrics"] == {"grad_norm": 0.0, "update_norm": 0.0}


def test_what_the_mask_excludes_cannot_influence_anything(session: Session) -> None:
    sequence = sequence_of(session, 5)
    sample = scored(QUESTION, sequence, 1.0)
    inputs = sample["loss_inputs"]
    inputs["loss_mask"]["data"][-1] = 0
    expected = session.train([sample])
    inputs["grpo_inputs"]["advantages"]["data"][-1] = 3e38
    inputs["grpo_inputs"]["generator_logprobs"]["data"][-1] = -3e38
    assert session.train([sample]) == expected


def test_a_clipped_token_that_its_generator_held_for_impossible_leaves_the_others_as_they_are(session: Session) -> None:
    sequence = sequence_of(session, 5)
    normal = scored(QUESTION, sequence, 1.0)
    impossible = scored(QUESTION, sequence, 1.0, [-1000.0, -3e38, *sequence["logprobs"][2:]])
    trained = session.train([normal, impossible])
    assert trained["loss"] == pytest.approx(-(8 * 1.0 + 2 * 1.28) / 10, rel=1e-5)
    assert trained["metrics"]["loss/clip/high_fraction"] == pytest.approx(0.2)
    assert all(math.isfinite(value) for value in trained["metrics"].values())
    masked = scored(QUESTION, sequence, 1.0)
    masked["loss_inputs"]["loss_mask"]["data"][-5:-3] = [0, 0]
    norms = []
    session.step(0.0)
    for batch in ([normal, impossible], [normal, masked]):
        session.train(batch, agg_type="fixed_horizon")
        norms.append(session.step(0.0)["metrics"]["grad_norm"])
    assert norms[0] == pytest.approx(norms[1], rel=1e-5) != 0


def test_a_model_without_knowledge_has_the_entropy_of_its_vocabulary(http: httpx.Client) -> None:
    session = Session(http, "uniform", dropout=0)
    (sequence,) = session.sample(QUESTION, max_tokens=4, seed=1)
    assert sequence["logprobs"] == pytest.approx([-math.log(UNIFORM)] * len(sequence["tokens"]), abs=1e-5)
    trained = session.train([scored(QUESTION, sequence, 1.0)])
    assert trained["metrics"]["entropy/mean"] == pytest.approx(math.log(UNIFORM), abs=1e-4)
    assert session.train([whole([1, 2, 3])], "LOSS_TYPE_CROSS_ENTROPY")["loss"] == pytest.approx(math.log(UNIFORM))


def test_policy_losses_run_without_dropout_so_the_same_batch_gives_the_same_loss(http: httpx.Client) -> None:
    session = Session(http, dropout=0.5)
    for _ in range(3):
        session.train([whole([1, 2, 3, 4, 5, 6])], "LOSS_TYPE_CROSS_ENTROPY")
        session.step(0.05)
    (sequence,) = session.sample(QUESTION, max_tokens=6)
    sample = scored(QUESTION, sequence, 1.0)
    first, second = session.train([sample]), session.train([sample])
    assert first == second
    assert first["loss"] == pytest.approx(-1.0, abs=1e-4)
    supervised = [session.train([whole([1, 2, 3, 4, 5, 6])], "LOSS_TYPE_CROSS_ENTROPY")["loss"] for _ in range(2)]
    assert supervised[0] != supervised[1], "cross-entropy draws dropout masks anew for each call"
