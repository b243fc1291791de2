"""Every route that takes an Idempotency-Key, found in the map of URLs: sixteen requests at once under one key take
effect once, and get one answer."""

import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from flask import Flask

from app import create_app
from settings import Settings
from store import keys
from store.store import open_store
from tests.http.conftest import CARD, SESSIONS, Api

TOGETHER = "/together/v1/rl"
MODEL = {"base_model": CARD.name}
PROMPT = {"chunks": [{"encoded_text": {"tokens": [1, 2]}}]}
NATIVE_SAMPLE = {"model_input": PROMPT, "loss_inputs": {"target_tokens": {"data": [2, 3], "dtype": "D_TYPE_INT64"}}}
TARGETS = {"target_tokens": {"data": [2, 3], "dtype": "int64"}}
SAMPLE = {"model_input": PROMPT, "loss_fn_inputs": TARGETS}
WEIGHED = {**SAMPLE, "loss_fn_inputs": {**TARGETS, "weights": {"data": [0.0, 1.0], "dtype": "float32"}}}
LOSS = {"type": "LOSS_TYPE_CROSS_ENTROPY"}
# Of the endpoints that need more than {}.
BODIES: dict[str, dict[str, Any]] = {
    "sessions.create_training_session": MODEL,
    "operations.sample": {"prompt": PROMPT},
    "operations.forward_backward": {"samples": [NATIVE_SAMPLE], "loss": LOSS},
    "log.log_value": {"name": "reward", "step": 1, "value": 0.5},
    "together_model_resources.create_model_resources": MODEL,
    "together_model_resources.estimate_model_resources_cost": MODEL,
    "together_model_resources.extend_model_resources_expiry": {"seconds": 60},
    "together_sessions.update_session": {"display_name": "ann"},
    "together_operations.forward_backward": {"samples": [WEIGHED], "loss": LOSS},
    "together_operations.custom_forward_backward": {
        "samples": [SAMPLE],
        "gradients": [{"data": [0.5, 0.5], "dtype": "D_TYPE_FLOAT32"}],
    },
    "together_operations.weights_sync": {"weight_sync_type": "WEIGHT_SYNC_TYPE_SYNCHRONOUS"},
    "together_operations.sample": {"model_inputs": [PROMPT]},
}
# What this server does not offer.
REFUSED = "together_shaping"


def keyed_routes() -> list[tuple[str, str, str]]:
    """Method, endpoint and path of every route of an API that changes something."""
    rules = create_app(Settings(), open_store(Settings())).url_map.iter_rules()
    posts = [(method, rule) for rule in rules for method in ("POST", "PATCH") if method in (rule.methods or ())]
    found = [(method, str(rule.endpoint), rule.rule) for method, rule in posts if "/v1/" in rule.rule]
    return [(method, endpoint, rule) for method, endpoint, rule in found if endpoint != REFUSED]


class Place:
    """A session of each API, with an operation that waits, for a route to act upon."""

    def __init__(self, api: Api) -> None:
        self.resources_id = api.client.post(f"{TOGETHER}/model-resources", json=MODEL).json["id"]
        attached = api.client.post(f"{TOGETHER}/training-sessions", json={"model_resources_id": self.resources_id})
        self.publishing_id = attached.json["id"]
        self.session = api.session()
        self.operation_id = api.sample(self.session)

    def path(self, rule: str) -> str:
        session_id = self.publishing_id if rule.startswith("/together") else self.session.rpartition("/")[2]
        ids = {
            "session_id": session_id,
            "operation_id": self.operation_id,
            "model_resources_id": self.resources_id,
            "payload_id": "payload",
        }
        path = re.sub(r"<id:(\w+)>", lambda found: ids[found[1]], rule)
        # With its sessions, which it has.
        return path if not rule.endswith("model-resources/<id:model_resources_id>/stop") else f"{path}?force=true"


def census(api: Api) -> Counter[str]:
    """How many there are of what a request could make."""
    names = [key.decode().split(":") for key in api.redis.keys(f"{keys.PREFIX}*")]
    made = Counter(name[1] for name in names if name[1] in ("session", "operation", "resources") and len(name) == 3)
    for session_id in (name[2] for name in names if name[1] == "session" and len(name) == 3):
        made["logged"] += api.redis.xlen(keys.logged(session_id))
    return made


@pytest.mark.parametrize(("method", "endpoint", "rule"), keyed_routes())
def test_sixteen_at_once_under_one_key_are_one(app: Flask, api: Api, method: str, endpoint: str, rule: str) -> None:
    place = Place(api)
    body = BODIES.get(endpoint, {})
    if endpoint == "together_sessions.create_session":
        body = {"model_resources_id": place.resources_id}
    before = census(api)

    def send(_: int) -> tuple[int, bytes]:
        headers = {"Idempotency-Key": "one", "X-Request-ID": "one"}
        answer = app.test_client().open(place.path(rule), method=method, json=body, headers=headers)
        return answer.status_code, answer.data

    with ThreadPoolExecutor(16) as pool:
        answers = set(pool.map(send, range(16)))
    assert len(answers) == 1, answers
    status, said = answers.pop()
    assert status == 200, said
    made = census(api) - before
    assert max(made.values(), default=0) <= 1, made


def test_the_routes_of_both_apis_are_among_them() -> None:
    rules = {rule for _, _, rule in keyed_routes()}
    assert {SESSIONS, f"{TOGETHER}/model-resources", f"{TOGETHER}/training-sessions"} <= rules
    assert {endpoint for _, endpoint, _ in keyed_routes()} >= set(BODIES)


def test_a_retry_after_the_process_died_makes_nothing_more(api: Api) -> None:
    """The answer was not kept: only the scripts knew."""
    once = {"Idempotency-Key": "one"}
    first = api.client.post(f"{TOGETHER}/model-resources", json=MODEL, headers=once)
    (answer,) = api.redis.keys(f"{keys.PREFIX}idempotency:*")
    assert 0 < api.redis.ttl(answer) <= 86_400
    api.redis.hdel(answer, "answer")
    assert api.client.post(f"{TOGETHER}/model-resources", json=MODEL, headers=once).json["id"] == first.json["id"]
    stop = f"{TOGETHER}/model-resources/{first.json['id']}/stop"
    assert api.client.post(stop, headers=once).status_code == 200
    for key in api.redis.keys(f"{keys.PREFIX}idempotency:*"):
        api.redis.hdel(key, "answer")
    again = api.client.post(stop, headers=once)
    assert (again.status_code, again.json["status"]) == (200, "MODEL_RESOURCES_STATUS_STOPPED")
    assert api.client.post(stop).status_code == 400
