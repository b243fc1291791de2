"""API keys: when set, a Bearer token on everything that is not health or documentation."""

from typing import Any

import msgspec
import pytest

from app import create_app
from domain.api_key import KeyLimits
from settings import Settings
from store.store import Store
from tests.http.conftest import SESSIONS, Api


@pytest.fixture
def locked(settings: Settings, store: Store) -> Any:
    return create_app(msgspec.structs.replace(settings, api_keys=("one", "two")), store).test_client()


@pytest.mark.parametrize("token", ["one", "two"])
def test_any_of_the_keys_opens(locked: Any, token: str) -> None:
    assert locked.get(SESSIONS, headers={"Authorization": f"Bearer {token}"}).status_code == 200


@pytest.mark.parametrize("key", ["a=b", "YWJj==", "=", "a, b=c".replace(" ", ""), 'quo"ted', "Bearer"])
def test_a_key_may_hold_any_printable_character(settings: Settings, store: Store, key: str) -> None:
    client: Any = create_app(msgspec.structs.replace(settings, api_keys=(key,)), store).test_client()
    assert client.get(SESSIONS, headers={"Authorization": f"bearer {key}"}).status_code == 200
    assert client.get(SESSIONS, headers={"Authorization": f"Bearer {key}x"}).status_code == 401


WRONG = (
    None,
    "Bearer",
    "Bearer ",
    "Bearer three",
    "Bearer onetwo",
    "Bearer \xfcne",
    "Bearer one two",
    "Basic b25l",
    "one",
)


@pytest.mark.parametrize("authorization", WRONG)
@pytest.mark.parametrize("path", [SESSIONS, "/v1/nothing", "/metrics", "/nothing"])
def test_without_a_known_key_everything_is_a_401(locked: Any, authorization: str | None, path: str) -> None:
    response = locked.get(path, headers={"Authorization": authorization} if authorization else {})
    assert (response.status_code, response.json["code"]) == (401, 401)
    assert response.headers["WWW-Authenticate"].lower().startswith("bearer")


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/openapi.json", "/docs", "/static/lib/rapidoc-min.js"])
def test_health_and_documentation_stay_open(locked: Any, path: str) -> None:
    assert locked.get(path).status_code == 200


def test_an_idempotency_key_belongs_to_one_caller(locked: Any) -> None:
    ids = set()
    for token in ("one", "two", "one"):
        headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": "same"}
        ids.add(locked.post(SESSIONS, json={"base_model": "org/tiny"}, headers=headers).json["session_id"])
    assert len(ids) == 2


@pytest.mark.parametrize("held", ["wait", "settled"])
def test_a_get_that_is_held_when_its_key_is_revoked_tells_nothing(
    api: Api, monkeypatch: pytest.MonkeyPatch, held: str
) -> None:
    made, key = api.store.api_keys.create("alice", KeyLimits())
    api.client.environ_base["HTTP_AUTHORIZATION"] = f"Bearer {key}"
    native = api.session()
    resources = api.client.post("/together/v1/rl/model-resources", json={"base_model": "org/tiny"}).json["id"]
    sessions = "/together/v1/rl/training-sessions"
    attached = api.client.post(sessions, json={"model_resources_id": resources}).json["id"]
    path = {"wait": f"{native}/operations/sample/{api.sample(native)}", "settled": f"{sessions}/{attached}"}[held]
    wait = getattr(api.store.operations, held)

    def revoked_meanwhile(*arguments: Any) -> Any:
        api.store.api_keys.revoke(made.id)
        return wait(*arguments)

    assert api.client.get(path, headers={"Prefer": "wait=0"}).status_code == 200
    monkeypatch.setattr(api.store.operations, held, revoked_meanwhile)
    answer = api.client.get(path, headers={"Prefer": "wait=0"})
    assert (answer.status_code, answer.headers["WWW-Authenticate"].lower()) == (401, "bearer")


def test_so_does_one_that_is_held_when_the_first_key_is_made(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    session = api.session()
    path = f"{session}/operations/sample/{api.sample(session)}"
    wait = api.store.operations.wait

    def closed_meanwhile(*arguments: Any) -> Any:
        api.store.api_keys.create("alice", KeyLimits())
        return wait(*arguments)

    monkeypatch.setattr(api.store.operations, "wait", closed_meanwhile)
    assert api.client.get(path).status_code == 401
