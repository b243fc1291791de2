"""`timeout_seconds`: how long the operation that a request asks for may run."""

import contextlib
from typing import Any

import msgspec
import pytest

from app import create_app
from settings import Settings
from store import keys
from store.store import Store
from tests.http.conftest import CARD, SESSIONS, WORKER, Api
from tests.schemas.bodies import cross_entropy, sample

BODIES: dict[str, dict[str, Any]] = {
    "sample": {"prompt": {"chunks": [{"encoded_text": {"tokens": [1, 2]}}]}, "sampling_params": {"max_tokens": 3}},
    "forward-backward": cross_entropy(sample([1, 2, 3])),
    "optim-step": {},
    "training-checkpoint": {},
    "inference-checkpoint": {},
}
SETTINGS = {
    "create": "create_session_timeout",
    "sample": "sample_timeout",
    "forward-backward": "forward_backward_timeout",
    "optim-step": "optim_step_timeout",
    "training-checkpoint": "checkpoint_timeout",
    "inference-checkpoint": "checkpoint_timeout",
}


def post(client: Any, kind: str, session: str, **more: Any) -> Any:
    if kind == "create":
        return client.post(SESSIONS, json={"base_model": CARD.name, **more})
    return client.post(f"{session}:{kind}", json={**BODIES[kind], **more})


def granted(api: Api, session: str) -> float | None:
    """What the worker is told of the last operation of the session, those before it having ended."""
    queue = [id.decode() for id in api.redis.zrange(keys.session_queue(session.rpartition("/")[2]), 0, -1)]
    for before in queue[:-1]:
        with contextlib.suppress(AssertionError):
            api.finish(before, None)
    claim = api.store.claims.claim(queue[-1], WORKER, "fence")
    assert claim is not None
    return claim.timeout_seconds


@pytest.mark.parametrize("kind", SETTINGS)
def test_the_worker_is_told_what_the_request_asks_for_or_else_the_servers_limit(
    api: Api, settings: Settings, kind: str
) -> None:
    for asked, expected in (({"timeout_seconds": 2.5}, 2.5), ({"timeout_seconds": None}, None), ({}, None)):
        session = api.session()
        answer = post(api.client, kind, session, **asked)
        assert answer.status_code == 200, answer.text
        if kind == "create":
            session = f"{SESSIONS}/{answer.json['session_id']}"
        assert granted(api, session) == (expected or getattr(settings, SETTINGS[kind]))


@pytest.mark.parametrize("kind", SETTINGS)
def test_more_than_the_server_allows_is_refused_with_the_limit_and_its_setting(
    api: Api, settings: Settings, store: Store, kind: str
) -> None:
    name = SETTINGS[kind]
    client = create_app(msgspec.structs.replace(settings, **{name: 90.0}), store).test_client()
    session = api.session()
    refused = post(client, kind, session, timeout_seconds=90.5)
    assert refused.status_code == 400
    (error,) = refused.json["errors"]
    assert error["field"] == "timeout_seconds"
    assert error["message"] == f"must be at most 90, this server's CELERITY_{name.upper()}"
    assert api.client.get(f"{session}/operations").json == [], "nothing was accepted"
    assert post(client, kind, session, timeout_seconds=90).status_code == 200


@pytest.mark.parametrize("seconds", [0, -1, 1e300, "5", True, [5]])
def test_what_is_no_positive_number_is_refused(api: Api, seconds: Any) -> None:
    session = api.session()
    for kind in SETTINGS:
        assert post(api.client, kind, session, timeout_seconds=seconds).status_code == 400
