"""Names that are not this host's, and pages of other sites: neither reads or changes anything."""

from typing import Any

import msgspec
import pytest
from flask import Flask
from werkzeug.exceptions import Forbidden

from app import create_app
from app.host import check_host
from domain.api_key import KeyLimits
from settings import Settings
from store.store import Store
from tests.http.conftest import SESSIONS, Api

OWN = ("localhost", "localhost:8000", "LOCALHOST", "127.0.0.1:8000", "127.9.9.9", "[::1]:8000")
STRANGE = ("evil.example", "evil.example:8000", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.7", "[::2]",
           "0.0.0.0", "", "a b")  # fmt: skip
# As browsers say it of a page of another site, of a frame without an origin, and of another port of this host.
FOREIGN = (
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"},
    {"Origin": "http://localhost:3000", "Sec-Fetch-Site": "same-site"},
    {"Origin": "http://localhost:3000"},
    # Not as browsers say it.
    {"Origin": "http://[::1"},
)
FORM = {"Content-Type": "text/plain"}


@pytest.mark.parametrize("host", OWN)
def test_a_server_without_keys_is_served_under_its_own_names(api: Api, host: str) -> None:
    assert api.client.get(SESSIONS, headers={"Host": host}).status_code == 200
    assert api.client.get("/", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("host", STRANGE)
@pytest.mark.parametrize(
    "path", [SESSIONS, "/v1/workers", "/metrics", "/", "/console/login", "/together/v1/rl/model-resources"]
)
def test_and_tells_nothing_under_another(api: Api, host: str, path: str) -> None:
    answer = api.client.get(path, headers={"Host": host})
    assert answer.status_code == 403
    assert "CELERITY_PUBLIC_URL" in answer.text


def test_a_host_that_is_no_name_at_all_is_refused_as_one(app: Flask) -> None:
    """The test client cannot send it."""
    with app.test_request_context(SESSIONS, environ_overrides={"HTTP_HOST": "[1::2::3]"}), pytest.raises(Forbidden):
        check_host()


def test_nothing_is_made_under_another_name(api: Api) -> None:
    answer = api.client.post(SESSIONS, json={"base_model": "org/tiny"}, headers={"Host": "evil.example:8000"})
    assert (answer.status_code, answer.json["code"]) == (403, 403)
    assert api.client.get(SESSIONS).json == []


def test_a_probe_may_ask_by_any_name_whether_it_is_ready(api: Api) -> None:
    for path in ("/healthz", "/readyz"):
        assert api.client.get(path, headers={"Host": "10.0.0.7:8000"}).status_code == 200


def test_the_public_url_names_one_more(settings: Settings, store: Store) -> None:
    public = msgspec.structs.replace(settings, public_url="https://Train.example:8443/")
    client: Any = create_app(public, store).test_client()
    assert client.get(SESSIONS, headers={"Host": "train.example"}).status_code == 200
    assert client.get(SESSIONS, headers={"Host": "localhost"}).status_code == 200
    assert client.get(SESSIONS, headers={"Host": "other.example"}).status_code == 403


def test_with_a_key_a_name_proves_nothing_and_is_not_asked_for(api: Api) -> None:
    _, key = api.store.api_keys.create("ann", KeyLimits())
    strange = {"Host": "behind.a.proxy"}
    assert api.client.get(SESSIONS, headers=strange | {"Authorization": f"Bearer {key}"}).status_code == 200
    assert api.client.get(SESSIONS, headers=strange).status_code == 401


def test_a_link_is_not_made_of_a_host_that_is_none(api: Api) -> None:
    _, key = api.store.api_keys.create("ann", KeyLimits())
    together, caller = "/together/v1/rl", {"Authorization": f"Bearer {key}"}
    resources = api.client.post(f"{together}/model-resources", json={"base_model": "org/tiny"}, headers=caller).json[
        "id"
    ]
    body = {"model_resources_id": resources}
    session = api.client.post(f"{together}/training-sessions", json=body, headers=caller).json["id"]
    answer = api.client.post(
        f"{together}/training-sessions/{session}/payloads/upload-url", headers=caller | {"Host": "a b"}
    )
    assert (answer.status_code, answer.json["code"]) == (400, 400)
    assert "Host" in answer.json["message"]


@pytest.mark.parametrize("headers", FOREIGN)
def test_a_page_of_another_site_stops_nothing(api: Api, headers: dict[str, str]) -> None:
    session = api.session()
    answer = api.client.post(f"{session}:stop", headers=headers | FORM)
    assert (answer.status_code, answer.json["code"]) == (403, 403)
    assert "another site" in answer.json["message"]
    assert api.client.get(session).json["status"] == "TRAINING_SESSION_STATUS_CREATING"


def test_no_route_that_changes_something_takes_it_from_a_page_of_another_site(api: Api) -> None:
    asked = 0
    for rule in api.client.application.url_map.iter_rules():
        for method in {"POST", "PATCH", "PUT", "DELETE"} & set(rule.methods):
            answer = api.client.open(rule.rule.replace("<id:", "").replace(">", ""), method=method, headers=FOREIGN[2])
            assert answer.status_code == 403, (method, rule.rule)
            asked += 1
    assert asked > 30


OUR_OWN: tuple[dict[str, str], ...] = (
    {},
    {"Sec-Fetch-Site": "same-origin", "Origin": "http://localhost"},
    {"Origin": "http://localhost"},
    {"Sec-Fetch-Site": "none"},
    # A page cannot add this to what it sends elsewhere without asking first, and nobody answers.
    {"Origin": "app://desk", "Sec-Fetch-Site": "cross-site", "Authorization": "Bearer any"},
)


@pytest.mark.parametrize("headers", OUR_OWN)
def test_programs_and_our_own_pages_need_nothing_more_than_before(api: Api, headers: dict[str, str]) -> None:
    assert api.client.post(f"{api.session()}:stop", headers=headers).status_code == 200


def test_a_page_of_the_public_url_is_our_own_behind_a_proxy_that_changes_the_host(
    settings: Settings, store: Store
) -> None:
    public = msgspec.structs.replace(settings, public_url="https://train.example")
    client: Any = create_app(public, store).test_client()
    for origin, status in (("https://train.example", 200), ("https://other.example", 403)):
        answer = client.post(SESSIONS, json={"base_model": "org/tiny"}, headers={"Origin": origin})
        assert answer.status_code == status


def test_who_asks_whether_another_site_may_is_told_nothing(api: Api) -> None:
    asking = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST",
              "Access-Control-Request-Headers": "authorization"}  # fmt: skip
    for path in (SESSIONS, f"{api.session()}:stop", "/nothing"):
        answer = api.client.options(path, headers=asking)
        assert answer.status_code in (404, 405)
        assert not [name for name, _ in answer.headers if name.startswith("Access-Control")]
