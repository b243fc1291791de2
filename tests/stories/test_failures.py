"""Bad input and bad luck: a code and a sentence, and the worker lives on."""

import time

import httpx
import pytest

from testing.bodies import SESSIONS, scored, step_body, whole
from testing.tiny_model import TOKENIZER_SIZE
from tests.stories.client import Session

QUESTION = [10, 20, 30]
PREFIX = "TRAINING_OPERATION_ERROR_CODE_"


def test_a_step_with_nothing_accumulated_fails_and_leaves_the_step_alone(http: httpx.Client) -> None:
    session = Session(http)
    error = session.error(session.submit("optim-step", step_body()))
    assert error["code"] == PREFIX + "INVALID_INPUT"
    assert session.read()["step"] == 0
    session.train([whole([1, 2, 3])], "LOSS_TYPE_CROSS_ENTROPY")
    assert session.step()["step"] == 1
    assert session.error(session.submit("optim-step", step_body()))["code"] == PREFIX + "INVALID_INPUT"


def test_a_loss_that_is_not_finite_adds_nothing_and_earlier_calls_stay(http: httpx.Client) -> None:
    session = Session(http, dropout=0)
    session.train([whole([1, 2, 3])], "LOSS_TYPE_CROSS_ENTROPY")
    (sequence,) = session.sample(QUESTION, max_tokens=3)
    impossible = scored(QUESTION, sequence, -1.0, generator=[-200.0] * len(sequence["tokens"]))
    path = session.submit("forward-backward", {"samples": [impossible], "loss": {"type": "LOSS_TYPE_GRPO"}})
    assert session.error(path)["code"] == PREFIX + "NON_FINITE"
    # What an earlier call added is still there to step along.
    assert session.step(0.01)["metrics"]["grad_norm"] > 0


@pytest.mark.parametrize("token", [TOKENIZER_SIZE, -1, 2147483648, 5279552648203111001])
def test_a_token_outside_the_vocabulary_is_refused_with_its_place_and_nothing_is_queued(
    http: httpx.Client, token: int
) -> None:
    session = Session(http)
    body = {"prompt": {"chunks": [{"encoded_text": {"tokens": [1, token]}}]}}
    answer = http.post(f"{session.path}:sample", json=body)
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["field"] == "prompt.chunks[0].encoded_text.tokens[1]"
    assert http.get(f"{session.path}/operations").json() == []
    assert session.sample(QUESTION, max_tokens=2)[0]["tokens"]


def test_an_unknown_base_model_is_refused_at_create(http: httpx.Client) -> None:
    answer = http.post(SESSIONS, json={"base_model": "no/such-model"})
    assert answer.status_code == 400
    assert "no/such-model" in answer.text


def test_stopping_ends_what_waits_keeps_what_ended_and_refuses_what_comes(http: httpx.Client) -> None:
    session = Session(http)
    done = session.submit(
        "forward-backward", {"samples": [whole([1, 2, 3])], "loss": {"type": "LOSS_TYPE_CROSS_ENTROPY"}}
    )
    before = session.end(done)
    for _ in range(2):
        assert http.post(f"{session.path}:stop").status_code == 200
    while session.read()["status"] == "TRAINING_SESSION_STATUS_STOPPING":
        time.sleep(0.05)
    assert session.read()["status"] == "TRAINING_SESSION_STATUS_STOPPED"
    assert session.end(done) == before
    refused = http.post(f"{session.path}:optim-step", json={})
    assert refused.status_code == 400
    assert "STOPPED" in refused.json()["message"]


def test_an_operation_is_not_found_under_another_kind_or_session(http: httpx.Client) -> None:
    session, other = Session(http), Session(http)
    path = session.submit("sample", {"prompt": {"chunks": [{"encoded_text": {"tokens": [1]}}]}})
    operation_id = path.rpartition("/")[2]
    for wrong in (
        f"{session.path}/operations/forward-backward/{operation_id}",
        f"{other.path}/operations/sample/{operation_id}",
        f"{session.path}/operations/sample/00000000-0000-0000-0000-000000000000",
        f"{session.path}/operations/sample/x",
    ):
        assert http.get(wrong).status_code == 404
    session.result(path)
