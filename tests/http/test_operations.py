"""Operations: accepted at once, read under their kind, listed, cancelled, limited in number."""

from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import orjson
import pytest

from app import create_app
from app.server.environ import BODY, RESERVATION
from domain.forward_backward import ForwardBackwardRequest, ForwardBackwardResult
from domain.operation import ErrorCode, OperationError
from domain.optim_step import OptimStepResult
from domain.sample import SampleResult, ScoredPrompt, Sequence, StopReason
from schemas.examples import FORWARD_BACKWARD
from settings import Settings
from store.dispatch import Dispatcher, Released
from tests.http.conftest import WORKER, Api
from tests.schemas.bodies import cross_entropy, sample

PENDING = "TRAINING_OPERATION_STATUS_PENDING"
BODIES = {
    "sample": {"prompt": {"chunks": [{"encoded_text": {"tokens": [1, "2"]}}]}, "sampling_params": {"max_tokens": 3}},
    "forward-backward": cross_entropy(sample([1, 2, 3])),
    "optim-step": {},
}


@pytest.mark.parametrize("kind", BODIES)
def test_an_operation_is_accepted_at_once_and_read_under_its_kind_alone(api: Api, kind: str) -> None:
    session, other = api.session(), api.session()
    accepted = api.client.post(f"{session}:{kind}", json=BODIES[kind])
    assert accepted.status_code == 200
    assert set(accepted.json) == {"operation_id", "status"}
    assert accepted.json["status"] == PENDING
    operation_id = accepted.json["operation_id"]
    read = api.client.get(f"{session}/operations/{kind}/{operation_id}").json
    assert read == {**accepted.json, "queue_position": 1}, "the session's creation comes first"
    for wrong in set(BODIES) - {kind}:
        assert api.client.get(f"{session}/operations/{wrong}/{operation_id}").status_code == 404
    assert api.client.get(f"{other}/operations/{kind}/{operation_id}").status_code == 404


@pytest.mark.parametrize("operation_id", ["x", "8f3c7e9e-2f5f-4c1f-8f11-01900a6e5c1b", "a%00b", "a:b", "x" * 200])
def test_an_unknown_operation_is_a_404(api: Api, operation_id: str) -> None:
    response = api.client.get(f"{api.session()}/operations/sample/{operation_id}")
    assert (response.status_code, response.json["code"]) == (404, 404)


def test_a_sample_s_result_is_real_numbers(api: Api) -> None:
    session = api.session()
    operation_id = api.sample(session)
    api.begin(session)
    sequence = Sequence(np.array([5, 6], dtype=np.int32), np.array([-0.5, -1.1], dtype=np.float32), StopReason.LENGTH)
    api.finish(operation_id, SampleResult((sequence, sequence)))
    response = api.client.get(f"{session}/operations/sample/{operation_id}")
    expected = {"tokens": [5, 6], "logprobs": [-0.5, -1.1], "stop_reason": "length"}
    assert orjson.loads(response.data) == {
        "operation_id": operation_id,
        "status": "TRAINING_OPERATION_STATUS_COMPLETED",
        "data": {"sequences": [expected, expected]},
    }


def test_a_scored_prompt_s_logprobs_stand_beside_the_sequences(api: Api) -> None:
    session = api.session()
    body = {**BODIES["sample"], "sampling_params": {"max_tokens": 0}}
    operation_id = api.client.post(f"{session}:sample", json=body).json["operation_id"]
    api.begin(session)
    none = np.zeros(0, dtype=np.float32)
    sequence = Sequence(none.astype(np.int32), none, StopReason.LENGTH)
    scored = ScoredPrompt(np.array([0.0, -1.5], dtype=np.float32), 0, none.astype(np.int32), none)
    api.finish(operation_id, SampleResult((sequence,), prompts=(scored,)))
    assert api.client.get(f"{session}/operations/sample/{operation_id}").json["data"] == {
        "sequences": [{"tokens": [], "logprobs": [], "stop_reason": "length"}],
        "prompt_logprobs": [0.0, -1.5],
    }


def test_a_forward_backward_s_result_is_its_loss_and_metrics(api: Api) -> None:
    session = api.session()
    operation_id = api.client.post(f"{session}:forward-backward", json=BODIES["forward-backward"]).json["operation_id"]
    api.begin(session)
    api.finish(operation_id, ForwardBackwardResult(loss=1.5, metrics={"loss:mean": 1.5, "valid_tokens:sum": 2.0}))
    operation = api.client.get(f"{session}/operations/forward-backward/{operation_id}").json
    assert operation["data"] == {"loss": 1.5, "metrics": {"loss:mean": 1.5, "valid_tokens:sum": 2.0}}


def test_a_call_is_accepted_with_the_horizon_that_is_set_now(api: Api, settings: Settings) -> None:
    session = api.session()
    for horizon in (7, 9):
        client = create_app(msgspec.structs.replace(settings, horizon=horizon), api.store).test_client()
        answer: Any = client.post(f"{session}:forward-backward", json=BODIES["forward-backward"]).json
        operation = api.store.operations.get(session.rpartition("/")[2], answer["operation_id"])
        assert api.store.operations.request(operation, ForwardBackwardRequest).horizon == horizon


def test_an_optim_step_counts_in_the_session(api: Api) -> None:
    session = api.session()
    operation_id = api.client.post(f"{session}:optim-step", json={}).json["operation_id"]
    api.begin(session)
    api.finish(operation_id, OptimStepResult(step=1, metrics={"grad_norm": 2.0, "update_norm": 0.5}))
    operation = api.client.get(f"{session}/operations/optim-step/{operation_id}").json
    assert operation["data"] == {"step": 1, "metrics": {"grad_norm": 2.0, "update_norm": 0.5}}
    assert api.client.get(session).json["step"] == 1


def test_a_failed_operation_has_an_error_and_no_data(api: Api) -> None:
    session = api.session()
    operation_id = api.client.post(f"{session}:optim-step", json={}).json["operation_id"]
    api.begin(session)
    api.finish(operation_id, OperationError(ErrorCode.INVALID_INPUT, "nothing accumulated"))
    assert api.client.get(f"{session}/operations/optim-step/{operation_id}").json == {
        "operation_id": operation_id,
        "status": "TRAINING_OPERATION_STATUS_FAILED",
        "error": {"code": "TRAINING_OPERATION_ERROR_CODE_INVALID_INPUT", "message": "nothing accumulated"},
    }


def test_operations_are_listed_newest_first_with_their_times(api: Api) -> None:
    session = api.session()
    api.begin(session)
    ids = [api.client.post(f"{session}:{kind}", json=body).json["operation_id"] for kind, body in BODIES.items()]
    api.finish(ids[0], SampleResult(()))
    listed = api.client.get(f"{session}/operations").json
    assert [(one["operation_id"], one["kind"]) for one in listed] == list(zip(ids, BODIES, strict=True))[::-1]
    first = listed[-1]
    assert first["created_at"] <= first["started_at"] <= first["ended_at"]
    assert "started_at" not in listed[0]
    assert [one["operation_id"] for one in api.client.get(f"{session}/operations?limit=1&offset=1").json] == [ids[1]]


def test_only_an_operation_that_has_not_started_can_be_cancelled(api: Api) -> None:
    session = api.session()
    started, waiting = (api.client.post(f"{session}:optim-step", json={}).json["operation_id"] for _ in range(2))
    api.begin(session)
    assert api.store.claims.claim(started, "worker-1", "fence") is not None
    cancelled = api.client.post(f"{session}/operations/{waiting}:cancel")
    assert cancelled.status_code == 200
    assert cancelled.json["error"]["code"] == "TRAINING_OPERATION_ERROR_CODE_CANCELLED"
    assert api.client.post(f"{session}/operations/{waiting}:cancel").data == cancelled.data
    assert api.client.post(f"{session}/operations/{started}:cancel").status_code == 400
    assert api.client.post(f"{session}/operations/nope:cancel").status_code == 404


def test_too_many_waiting_operations_are_told_to_come_back(api: Api) -> None:
    session = api.session()
    api.begin(session)
    codes = [api.client.post(f"{session}:optim-step", json={}) for _ in range(4)]
    assert [response.status_code for response in codes] == [200, 200, 200, 429]
    assert int(codes[-1].headers["Retry-After"]) >= 1
    assert "3" in codes[-1].json["message"]


def test_what_is_refused_is_not_stored(api: Api) -> None:
    session = api.session()
    for body in (FORWARD_BACKWARD, cross_entropy(sample([64])), cross_entropy(sample([1, 2], [1]))):
        assert api.client.post(f"{session}:forward-backward", json=body).status_code == 400
    assert api.client.get(f"{session}/operations").json == []


def test_stop_strings_are_checked_against_the_session_s_own_model(api: Api) -> None:
    session = api.session(base_model="bare")
    body = {**BODIES["sample"], "sampling_params": {"max_tokens": 3, "stop": ["a"]}}
    response = api.client.post(f"{session}:sample", json=body)
    assert response.json["errors"][0]["field"] == "sampling_params.stop"


def test_a_wait_is_followed_and_bounded(api: Api) -> None:
    session = api.session()
    path = f"{session}/operations/sample/{api.sample(session)}"
    applied = {"wait=0": "wait=0", "respond-async, wait=1; x=y": "wait=1", "WAIT=1000": "wait=2"}
    for asked, expected in applied.items():
        assert api.client.get(path, headers={"Prefer": asked}).headers["Preference-Applied"] == expected
    assert "Preference-Applied" not in api.client.get(path, headers={"Prefer": "handling=lenient"}).headers
    assert "Preference-Applied" not in api.client.get(path).headers


@pytest.mark.parametrize("wait", ["wait=-1", "wait=soon", "wait", "wait=1.5", "wait=1e3"])
def test_a_wait_that_is_no_number_of_seconds_is_refused(api: Api, wait: str) -> None:
    session = api.session()
    path = f"{session}/operations/sample/{api.sample(session)}"
    response = api.client.get(path, headers={"Prefer": wait})
    assert (response.status_code, response.json["errors"][0]["field"]) == (400, "Prefer")


def test_the_largest_number_of_samples_is_accepted(api: Api, settings: Settings) -> None:
    session = api.session()
    app = create_app(msgspec.structs.replace(settings, max_body_bytes=2**28), api.store)
    response = app.test_client().post(f"{session}:forward-backward", json=cross_entropy(*[sample([1] * 32)] * 4096))
    assert response.status_code == 200


def test_a_pending_operation_says_how_many_come_before_it(api: Api) -> None:
    session = api.session()
    api.begin(session)
    ids = [api.sample(session) for _ in range(2)]
    path = f"{session}/operations/sample"
    headers = {"Prefer": "wait=0"}

    def positions() -> list[int | None]:
        return [api.client.get(f"{path}/{one}", headers=headers).json.get("queue_position") for one in ids]

    assert positions() == [0, 1]
    assert api.store.claims.claim(ids[0], WORKER, "fence") is not None
    assert positions() == [None, 1], "one that has begun waits no more"


def test_what_ends_before_the_acceptance_is_answered_was_accepted_all_the_same(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = api.session()
    api.begin(session)

    def work_at_once(_: Dispatcher, released: list[Released]) -> None:
        for operation in released:
            api.finish(operation.operation_id, OptimStepResult(step=1, metrics={}))

    monkeypatch.setattr(Dispatcher, "publish", work_at_once)
    assert api.client.post(f"{session}:optim-step", json={}).json["status"] == PENDING


def test_a_large_bodys_limit_is_not_asked_for_again_once_it_was_admitted(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, asked = api.session(), list[str]()

    def no_limit(owner: str) -> int:
        asked.append(owner)
        return 0

    monkeypatch.setattr(api.store.api_keys, "max_body_bytes", no_limit)
    text = orjson.dumps(BODIES["sample"]).ljust(80_000)
    for admitted, times in ((100_000, 0), (0, 2)):
        given = {BODY: text, RESERVATION: SimpleNamespace(most=admitted)}
        headers = {"Idempotency-Key": f"admitted-{admitted}"}
        answer = api.client.post(
            f"{session}:sample", content_type="application/json", headers=headers, environ_overrides=given
        )
        assert (answer.status_code, len(asked)) == (200, times), answer.json
