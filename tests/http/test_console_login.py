"""Who sees the console: a key for a cookie, no forms of other sites, nothing of other owners."""

from typing import Any

import msgspec
import pytest
from redis import Redis

from app import create_app
from app.console.blueprint import POLICY
from app.console.login_cookie import COOKIE, SECONDS
from domain.api_key import KeyLimits
from settings import Settings
from store import keys
from store.store import Store
from tests.http.conftest import SESSIONS, Api

LOGIN = "/console/login"


def log_in(client: Any, key: str, **options: Any) -> Any:
    return client.post(LOGIN, data={"key": key}, **options)


@pytest.fixture
def locked(settings: Settings, store: Store) -> Any:
    return create_app(msgspec.structs.replace(settings, api_keys=("one", "two")), store)


@pytest.fixture
def client(locked: Any) -> Any:
    return locked.test_client()


@pytest.mark.parametrize("path", ["/", "/console/sessions/x", "/console/sessions/x/curves", "/console/checkpoints/x"])
def test_without_a_login_every_page_is_the_login(client: Any, path: str) -> None:
    answer = client.get(path)
    assert (answer.status_code, answer.location) == (302, LOGIN)
    bearer = client.get(path, headers={"Authorization": "Bearer one"})
    assert bearer.status_code == 302, "a page is not the API"


def test_a_key_opens_and_the_cookie_holds_no_key(client: Any) -> None:
    answer = log_in(client, "one")
    assert (answer.status_code, answer.location) == (302, "/")
    cookie = answer.headers["Set-Cookie"]
    assert "HttpOnly" in cookie and "SameSite=Lax" in cookie and f"Max-Age={SECONDS}" in cookie
    assert client.get("/").status_code == 200
    assert client.get(LOGIN).status_code == 302, "a second login is not needed"


def test_each_login_has_a_token_of_its_own_which_the_store_cannot_tell(locked: Any, redis_url: str) -> None:
    clients = [locked.test_client() for _ in range(2)]
    for client in clients:
        log_in(client, "one")
    tokens = {client.get_cookie(COOKIE).value for client in clients}
    assert len(tokens) == 2 and all(len(token) >= 43 for token in tokens)
    with Redis.from_url(redis_url) as redis:
        kept = [key.decode() for key in redis.scan_iter(keys.PREFIX + "*")]
        logins = [key for key in kept if key.startswith(keys.login(""))]
        assert not any(token in key for token in tokens for key in kept)
        assert len(logins) == 2 and all(0 < redis.ttl(key) <= SECONDS for key in logins), "each ends by itself"
        redis.delete(*logins)
    assert clients[0].get("/").status_code == 302


def test_over_tls_the_cookie_stays_there(locked: Any) -> None:
    client = locked.test_client()
    base = {"base_url": "https://celerity.example"}
    assert "Secure" in log_in(client, "one", **base).headers["Set-Cookie"]


def test_a_wrong_key_is_told_so(client: Any) -> None:
    answer = log_in(client, "<script>three")
    assert answer.status_code == 401
    assert "not known here" in answer.text and "<script>three" not in answer.text
    assert "Set-Cookie" not in answer.headers


def test_a_cookie_that_was_changed_or_made_elsewhere_is_none(client: Any) -> None:
    log_in(client, "one")
    value = client.get_cookie(COOKIE).value
    for forged in (value[:-1], value + "A", "one", ""):
        client.set_cookie(COOKIE, forged)
        assert client.get("/").status_code == 302
    client.set_cookie(COOKIE, value)
    assert client.get("/").status_code == 200


def test_a_revoked_key_sees_nothing_more(api: Api) -> None:
    made, key = api.store.api_keys.create("alice", KeyLimits())
    assert log_in(api.client, key).status_code == 302
    assert api.client.get("/").status_code == 200
    api.store.api_keys.revoke(made.id)
    assert api.client.get("/").location == LOGIN


def test_logging_out_ends_the_login(client: Any) -> None:
    log_in(client, "one")
    kept = client.get_cookie(COOKIE).value
    assert client.post("/console/logout").location == LOGIN
    assert client.get("/").status_code == 302
    client.set_cookie(COOKIE, kept)
    assert client.get("/").status_code == 302, "whoever has copied the cookie is out too"


def test_logging_out_ends_no_other_login_of_the_key(locked: Any) -> None:
    first, second = locked.test_client(), locked.test_client()
    log_in(first, "one")
    log_in(second, "one")
    first.post("/console/logout")
    assert second.get("/").status_code == 200


def test_a_server_without_keys_needs_no_login(api: Api) -> None:
    assert api.client.get("/").status_code == 200
    assert api.client.get(LOGIN).location == "/"


STRANGE = [
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
]


@pytest.mark.parametrize("headers", STRANGE)
def test_a_form_that_another_site_sent_changes_nothing(api: Api, headers: dict[str, str]) -> None:
    session_id = api.session().rpartition("/")[2]
    answer = api.client.post(f"/console/sessions/{session_id}/stop", headers=headers)
    assert answer.status_code == 403
    assert api.client.get(f"{SESSIONS}/{session_id}").json["status"] == "TRAINING_SESSION_STATUS_CREATING"


def test_another_site_can_log_nobody_in_or_out(client: Any) -> None:
    foreign = {"Origin": "https://evil.example"}
    assert log_in(client, "two", headers=foreign).status_code == 403
    log_in(client, "one")
    assert client.post("/console/logout", headers=foreign).status_code == 403
    assert client.get("/").status_code == 200


def test_another_owners_things_are_not_there(locked: Any, store: Store) -> None:
    alice, bob = locked.test_client(), locked.test_client()
    session = alice.post(SESSIONS, json={"base_model": "org/tiny"}, headers={"Authorization": "Bearer one"})
    session_id = session.json["session_id"]
    sample = {"prompt": {"chunks": [{"encoded_text": {"tokens": [1]}}]}, "sampling_params": {"max_tokens": 1}}
    made = alice.post(f"{SESSIONS}/{session_id}:sample", json=sample, headers={"Authorization": "Bearer one"})
    log_in(alice, "one")
    log_in(bob, "two")
    ids = {"session_id": session_id, "operation_id": made.json["operation_id"]}
    asked = 0
    for rule in locked.url_map.iter_rules():
        if not rule.rule.startswith("/console/") or "session_id" not in rule.arguments:
            continue
        path = rule.rule
        for name, value in ids.items():
            path = path.replace(f"<id:{name}>", value)
        if "GET" in rule.methods:
            assert alice.get(path).status_code == 200, path
            assert bob.get(path).status_code == 404, path
        else:
            assert bob.post(path).status_code == 404, path
        asked += 1
    assert asked == 9
    assert session_id not in bob.get("/").text
    assert session_id in alice.get("/").text
    assert store.sessions.get(session_id).status == "CREATING"


@pytest.mark.parametrize("path", ["/", LOGIN, "/console/sessions/unknown", "/console/static/console.css"])
def test_every_page_lets_the_browser_run_nothing_but_our_files(api: Api, path: str) -> None:
    assert api.client.get(path).headers["Content-Security-Policy"] == POLICY
    assert "unsafe" not in POLICY


def test_errors_are_pages(api: Api) -> None:
    broken = api.session().rpartition("/")[2]
    api.redis.hset(keys.session(broken), "status", "NONSENSE")
    foreign = {"Origin": "https://elsewhere.example"}
    for answer, status, words in (
        (api.client.get("/console/sessions/unknown"), 404, "no such training session"),
        (api.client.get("/console/nothing/here"), 404, "There is no such page"),
        (api.client.post(f"/console/sessions/{broken}/stop", headers=foreign), 403, "sent by another site"),
        (api.client.get(f"/console/sessions/{broken}"), 500, "its log says why"),
    ):
        assert (answer.status_code, answer.mimetype) == (status, "text/html")
        assert words in answer.text and "Back to the overview" in answer.text
        assert answer.headers["Content-Security-Policy"] == POLICY
    assert api.client.get("/v1/nothing", headers={"Accept": "text/html"}).mimetype == "application/json"
