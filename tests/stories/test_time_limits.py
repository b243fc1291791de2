"""An operation that takes longer than it may ends with a sentence, and its session goes on as if it had never been."""

import httpx

from testing.bodies import SESSIONS, Json, sample_body, step_body, train_body, whole
from tests.stories.client import Session

PREFIX = "TRAINING_OPERATION_ERROR_CODE_"
QUESTION = [10, 20, 30]
# Many passes of 64 tokens, so that there is time to be late in.
LONG = [whole([(place * 7 + sample) % 250 for place in range(50)]) for sample in range(400)]


def timed_out(session: Session, kind: str, body: Json, seconds: float) -> Json:
    error = session.error(session.submit(kind, {**body, "timeout_seconds": seconds}))
    assert error["code"] == PREFIX + "TIMEOUT"
    assert f"limit of {seconds:g} s" in error["message"]
    assert "timeout_seconds" in error["message"], "what to do"
    return error


def test_a_sample_that_never_ends_is_cut_and_the_next_one_is_as_ever(http: httpx.Client) -> None:
    session, other = Session(http), Session(http)
    before = session.sample(QUESTION, 2, max_tokens=8, seed=5)
    neighbour = other.submit("sample", sample_body(QUESTION, 4, max_tokens=60, seed=1))
    timed_out(session, "sample", sample_body(QUESTION, 256, max_tokens=400), 0.05)
    assert session.sample(QUESTION, 2, max_tokens=8, seed=5) == before
    assert len(other.result(neighbour)["sequences"]) == 4


def test_a_forward_backward_that_is_cut_adds_nothing_and_what_came_before_it_stays(http: httpx.Client) -> None:
    session = Session(http)
    timed_out(session, "forward-backward", train_body(LONG, "LOSS_TYPE_CROSS_ENTROPY"), 0.05)
    assert session.error(session.submit("optim-step", step_body()))["code"] == PREFIX + "INVALID_INPUT"
    first = session.train([whole([1, 2, 3])], "LOSS_TYPE_CROSS_ENTROPY")
    timed_out(session, "forward-backward", train_body(LONG, "LOSS_TYPE_CROSS_ENTROPY"), 0.05)
    stepped = session.step(0.01)
    assert stepped["step"] == session.read()["step"] == 1
    assert stepped["metrics"]["grad_norm"] > 0
    assert session.train([whole([1, 2, 3])], "LOSS_TYPE_CROSS_ENTROPY")["loss"] < first["loss"]


def test_a_limit_above_the_servers_is_refused_by_name_and_nothing_is_queued(http: httpx.Client) -> None:
    session = Session(http)
    answer = http.post(f"{session.path}:optim-step", json={"timeout_seconds": 601})
    assert answer.status_code == 400
    assert answer.json()["errors"] == [
        {"field": "timeout_seconds", "message": "must be at most 600, this server's CELERITY_OPTIM_STEP_TIMEOUT"}
    ]
    assert http.get(f"{session.path}/operations").json() == []


def test_a_session_may_be_given_time_to_come(http: httpx.Client) -> None:
    created = http.post(SESSIONS, json={"base_model": "tiny", "timeout_seconds": 60})
    assert created.status_code == 200
    session = Session.known(http, created.json()["session_id"])
    assert session.sample(QUESTION, max_tokens=2)
