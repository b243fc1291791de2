"""Two tenants: what one key made is not there for another, and each has its own limits."""

import re
from typing import Any

import msgspec
import pytest
from flask import Flask

from app import create_app
from domain.api_key import KeyLimits
from domain.checkpoint import CheckpointKind, NewFile, Part
from schemas import examples
from settings import Settings
from store.store import open_store
from tests.http.conftest import SESSIONS, WORKER, Api

BODIES = {
    "operations.sample": examples.SAMPLE,
    "operations.forward_backward": examples.FORWARD_BACKWARD,
    "operations.optim_step": examples.OPTIM_STEP,
    "log.log_value": examples.LOGGED,
}
TOGETHER = "/together/v1/rl"
TOKENS: dict[str, Any] = {"chunks": [{"encoded_text": {"tokens": [1, 2]}}]}
FLOATS = {"data": [1.0, 1.0], "dtype": "float32"}
GRADIENT = {"data": [1.0, 1.0], "dtype": "D_TYPE_FLOAT32"}
INPUTS = {"target_tokens": {"data": [2, 3], "dtype": "int64"}, "weights": FLOATS}
TRAINED = {"model_input": TOKENS, "loss_fn_inputs": INPUTS}
SECOND_BODIES: dict[str, Any] = {
    "together_model_resources.extend_model_resources_expiry": {"seconds": 60},
    "together_operations.forward_backward": {"samples": [TRAINED], "loss": {"type": "LOSS_TYPE_CROSS_ENTROPY"}},
    "together_operations.custom_forward_backward": {"samples": [TRAINED], "gradients": [GRADIENT]},
    "together_operations.weights_sync": {"weight_sync_type": "WEIGHT_SYNC_TYPE_SYNCHRONOUS"},
    "together_operations.sample": {"model_inputs": [TOKENS]},
}


def tenant(app: Flask, api: Api, name: str, **limits: Any) -> Api:
    """A client that sends a new key with each of its requests."""
    made, key = api.store.api_keys.create(name, KeyLimits(**limits))
    client = app.test_client()
    client.environ_base["HTTP_AUTHORIZATION"] = f"Bearer {key}"
    client.environ_base["celerity.key_id"] = made.id
    return Api(client, api.store, api.redis)


@pytest.fixture
def alice(app: Flask, api: Api) -> Api:
    return tenant(app, api, "alice")


@pytest.fixture
def bob(app: Flask, api: Api) -> Api:
    return tenant(app, api, "bob")


def test_every_path_below_anothers_session_is_a_404(app: Flask, alice: Api, bob: Api) -> None:
    session = alice.session()
    ids = {"session_id": session.rpartition("/")[2], "operation_id": alice.sample(session)}
    asked = []
    for rule in app.url_map.iter_rules():
        if "session_id" not in rule.arguments or rule.rule.startswith(("/together/", "/console/")):
            continue
        path = rule.rule.replace("<id:session_id>", ids["session_id"]).replace("<id:operation_id>", ids["operation_id"])
        (method,) = set(rule.methods or ()) - {"HEAD", "OPTIONS"}
        body = BODIES.get(rule.endpoint, {}) if method == "POST" else None
        answer = bob.client.open(path, method=method, json=body)
        assert (answer.status_code, answer.json["message"]) == (404, "no such training session"), path
        asked.append(rule.endpoint)
    assert len(asked) == 15
    assert alice.client.get(session).json["status"] == "TRAINING_SESSION_STATUS_CREATING"
    (operation,) = alice.client.get(f"{session}/operations").json
    assert operation["status"] == "TRAINING_OPERATION_STATUS_PENDING"


def test_every_path_of_togethers_api_below_anothers_things_is_a_404(app: Flask, alice: Api, bob: Api) -> None:
    made = alice.client.post(f"{TOGETHER}/model-resources", json={"base_model": "org/tiny"})
    ids = {"model_resources_id": made.json["id"], "operation_id": "1", "payload_id": "1"}
    created = alice.client.post(f"{TOGETHER}/training-sessions", json={"model_resources_id": ids["model_resources_id"]})
    ids["session_id"] = created.json["id"]
    asked = []
    for rule in app.url_map.iter_rules():
        if not rule.rule.startswith(f"{TOGETHER}/") or not rule.arguments & {"session_id", "model_resources_id"}:
            continue
        path = re.sub("<id:(.*?)>", lambda name: ids[name[1]], rule.rule)
        (method,) = set(rule.methods or ()) - {"HEAD", "OPTIONS"}
        body = SECOND_BODIES.get(rule.endpoint, {}) if method != "GET" else None
        answer = bob.client.open(path, method=method, json=body)
        words = ("no such training session", "no such model resources")
        assert (answer.status_code, answer.json["message"] in words) == (404, True), (path, answer.json)
        asked.append(rule.endpoint)
    assert len(asked) == 22
    refused = bob.client.post(f"{TOGETHER}/training-sessions", json={"model_resources_id": ids["model_resources_id"]})
    assert (refused.status_code, refused.json["errors"][0]["field"]) == (400, "model_resources_id")
    for kind, name in (("model-resources", "model_resources_id"), ("training-sessions", "session_id")):
        assert bob.client.get(f"{TOGETHER}/{kind}").json["data"] == []
        assert [each["id"] for each in alice.client.get(f"{TOGETHER}/{kind}").json["data"]] == [ids[name]]


def test_anothers_checkpoint_is_not_there(alice: Api, bob: Api) -> None:
    session = alice.session()
    alice.begin(session)
    checkpoint_id = alice.client.post(f"{session}:training-checkpoint", json={}).json["operation_id"]
    claim = alice.store.claims.claim(checkpoint_id, WORKER, "fence")
    assert claim is not None
    folder = alice.store.checkpoints.begin(claim)
    parts = {Part.STATE: [NewFile("state.safetensors", 1, [b"w"])]}
    made = alice.store.checkpoints.write(claim, folder, CheckpointKind.TRAINING, 0, parts)
    assert alice.store.claims.finish(claim, made)
    path = f"/v1/rl/checkpoints/{checkpoint_id}"
    assert alice.client.get(path).status_code == 200
    assert [one["id"] for one in alice.client.get("/v1/rl/checkpoints").json] == [checkpoint_id]
    assert bob.client.get("/v1/rl/checkpoints").json == []
    download = f"{path}/download?variant=CHECKPOINT_VARIANT_MERGED"
    for answer in (bob.client.get(path), bob.client.delete(path), bob.client.get(download)):
        assert (answer.status_code, answer.json["message"]) == (404, "no such checkpoint")
    refused = bob.create(checkpoint_id=checkpoint_id)
    assert (refused.status_code, refused.json["errors"][0]["field"]) == (400, "checkpoint_id")
    assert alice.create(checkpoint_id=checkpoint_id).json["checkpoint_id"] == checkpoint_id
    assert alice.client.get(path).status_code == 200


def test_lists_show_ones_own(alice: Api, bob: Api) -> None:
    hers, his = [alice.session(), alice.session()], bob.session()
    assert [session["session_id"] for session in bob.client.get(SESSIONS).json] == [his.rpartition("/")[2]]
    page = alice.client.get(f"{SESSIONS}?status=TRAINING_SESSION_STATUS_CREATING&limit=1&offset=1").json
    assert [session["session_id"] for session in page] == [hers[0].rpartition("/")[2]]


def test_an_idempotency_key_gives_nobody_anothers_answer(alice: Api, bob: Api) -> None:
    key, session = {"Idempotency-Key": "same"}, alice.session()
    first = alice.client.post(f"{session}:optim-step", json={}, headers=key)
    assert bob.client.post(f"{session}:optim-step", json={}, headers=key).status_code == 404
    assert alice.client.post(f"{session}:optim-step", json={}, headers=key).data == first.data
    body = {"base_model": "org/tiny"}
    created = {who.client.post(SESSIONS, json=body, headers=key).json["session_id"] for who in (alice, bob, alice)}
    assert len(created) == 2


def test_the_first_key_closes_an_open_server_and_what_it_held(app: Flask, api: Api) -> None:
    session = api.session()
    assert api.client.get(session).status_code == 200
    alice = tenant(app, api, "alice")
    assert api.client.get(session).status_code == 401
    assert alice.client.get(session).status_code == 404
    assert alice.client.get(SESSIONS).json == []


def test_revoking_acts_at_once_and_stays(alice: Api, bob: Api) -> None:
    alice.store.api_keys.revoke(alice.client.environ_base["celerity.key_id"])
    assert alice.client.get(SESSIONS).status_code == 401
    assert bob.client.get(SESSIONS).status_code == 200
    bob.store.api_keys.revoke(bob.client.environ_base["celerity.key_id"])
    assert bob.client.get(SESSIONS).status_code == 401


def refused(answer: Any, words: str) -> None:
    assert (answer.status_code, answer.json["code"]) == (429, 429)
    assert words in answer.json["message"]
    assert int(answer.headers["Retry-After"]) >= 1


def test_more_requests_than_a_key_may_make_are_refused(app: Flask, api: Api, bob: Api) -> None:
    slow = tenant(app, api, "carol", rate=0.001)
    assert slow.client.get(SESSIONS).status_code == 200
    refused(slow.client.get(SESSIONS), "more than 0.001 requests a second")
    assert slow.client.get("/healthz").status_code == 200
    assert bob.client.get(SESSIONS).status_code == 200


@pytest.mark.usefixtures("store")
def test_an_open_server_has_the_limits_of_its_settings(settings: Settings) -> None:
    slow = msgspec.structs.replace(settings, max_rate_per_key=0.001)
    store = open_store(slow)
    client: Any = create_app(slow, store).test_client()
    assert client.get(SESSIONS).status_code == 200
    refused(client.get(SESSIONS), "more than 0.001 requests a second")
    store.close()


def test_more_sessions_than_a_key_may_have_are_refused(app: Flask, api: Api, bob: Api) -> None:
    carol = tenant(app, api, "carol", max_sessions=1)
    carol.session()
    refused(carol.create(), "1 sessions of this API key")
    assert bob.create().status_code == 200


def test_more_waiting_operations_than_a_key_may_have_are_refused(app: Flask, api: Api) -> None:
    carol = tenant(app, api, "carol", max_waiting=2)
    one, two = carol.session(), carol.session()
    carol.sample(one)
    carol.sample(two)
    refused(carol.client.post(f"{one}:optim-step", json={}), "2 operations of this API key")


def test_of_anothers_sessions_on_a_worker_there_is_only_the_number(alice: Api, bob: Api) -> None:
    session_id = alice.session().rpartition("/")[2]
    (seen,), (by_bob,) = (tenant.client.get("/v1/workers").json for tenant in (alice, bob))
    assert seen["sessions"] == [{"session_id": session_id, "epoch": 1}]
    assert by_bob["sessions"] == []
    assert seen["session_count"] == by_bob["session_count"] == 1
    assert session_id not in str(by_bob)
