"""API keys: when set, a Bearer token on everything that is not health or documentation."""

from typing import Any

import msgspec
import pytest

from app import create_app
from settings import Settings
from store.store import Store
from tests.http.conftest import SESSIONS


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
