"""Every error is JSON in one shape, the framework's own too, and short."""

from typing import Any, NoReturn

import orjson
import pytest
from flask import Flask

from tests.http.conftest import SESSIONS, Api

UNKNOWN = f"{SESSIONS}/abc"


def check_shape(response: Any, status: int) -> None:
    assert response.status_code == status, response.text
    assert response.mimetype == "application/json"
    body = orjson.loads(response.data)
    assert body["code"] == status
    assert body["message"]
    assert set(body) <= {"code", "message", "request_id", "errors"}
    assert len(response.data) < 10_000


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b'"x"',
        b"7",
        b"{",
        b'{"learning_rate": NaN}',
        b'{"learning_rate": Infinity}',
        b'{"learning_rate": 1e999}',
        b'{"learning_rate": "\xff"}',
        b'{"learning_rate": "\\ud800"}',
        b'{"\\ud800": 1}',
        b"[" * 30_000,
        b'{"a":' * 15_000,
        b'{"learning_rate": ' + b"9" * 5000 + b"}",
    ],
)
def test_a_body_that_is_not_a_json_object_is_a_400(api: Api, body: bytes) -> None:
    response = api.client.post(f"{api.session()}:optim-step", data=body, content_type="application/json")
    check_shape(response, 400)


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", "", None])
def test_a_body_that_is_not_sent_as_json_is_a_415(api: Api, content_type: str | None) -> None:
    check_shape(api.client.post(SESSIONS, data=b"{}", content_type=content_type), 415)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/none"),
        ("GET", "/v1"),
        ("GET", "/v1/nothing"),
        ("GET", f"{SESSIONS}/"),
        ("GET", "/v1/rl//training-sessions"),
        ("GET", f"{UNKNOWN}/operations/other/x"),
        ("GET", f"{SESSIONS}/a%00b"),
        ("GET", f"{SESSIONS}/a%2Fb"),
        ("GET", f"{SESSIONS}/%E2%82%AC"),
        ("POST", f"{UNKNOWN}:SAMPLE"),
        ("POST", f"{UNKNOWN}:train"),
        ("POST", f"{UNKNOWN}:sample:sample"),
        ("GET", f"{UNKNOWN}:train"),
        ("GET", UNKNOWN),
        ("GET", f"{UNKNOWN}/operations"),
        ("GET", f"{UNKNOWN}/operations/sample/x"),
        ("POST", f"{UNKNOWN}:stop"),
        ("POST", f"{UNKNOWN}:training-checkpoint"),
        ("POST", f"{UNKNOWN}/operations/x:cancel"),
        ("GET", "/static/nothing"),
        ("GET", f"{UNKNOWN}/operations/training-checkpoint/x"),
        ("GET", "/v1/rl/checkpoints/x"),
        ("DELETE", "/v1/rl/checkpoints/x"),
        ("GET", "/v1/rl/checkpoints/x/download?variant=CHECKPOINT_VARIANT_MERGED"),
    ],
)
def test_what_is_not_there_is_a_404(api: Api, method: str, path: str) -> None:
    check_shape(api.client.open(path, method=method), 404)


@pytest.mark.parametrize(
    ("verb", "body"),
    [
        ("sample", {"prompt": {"chunks": [{"encoded_text": {"tokens": [1]}}]}}),
        ("forward-backward", {"samples": [], "loss": {"type": "LOSS_TYPE_CROSS_ENTROPY"}}),
        ("optim-step", {}),
    ],
)
def test_an_unknown_session_is_a_404_before_its_model_is_asked(api: Api, verb: str, body: dict[str, Any]) -> None:
    check_shape(api.client.post(f"{UNKNOWN}:{verb}", json=body), 404)


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", f"{UNKNOWN}:sample", {"POST"}),
        ("GET", f"{UNKNOWN}%3Asample", {"POST"}),
        ("PUT", f"{UNKNOWN}:stop", {"POST"}),
        ("DELETE", SESSIONS, {"GET", "HEAD", "POST"}),
        ("OPTIONS", UNKNOWN, {"GET", "HEAD"}),
        ("POST", "/healthz", {"GET", "HEAD"}),
    ],
)
def test_a_method_that_a_path_does_not_take_is_a_405(api: Api, method: str, path: str, allowed: set[str]) -> None:
    response = api.client.open(path, method=method)
    check_shape(response, 405)
    assert set(response.headers["Allow"].split(", ")) == allowed


def test_a_colon_may_be_percent_encoded(api: Api) -> None:
    assert api.client.post(f"{api.session()}%3Astop").status_code == 200


def test_a_body_over_the_limit_is_a_413_that_states_it(api: Api) -> None:
    response = api.client.post(SESSIONS, data=b" " * 100_001, content_type="application/json")
    check_shape(response, 413)
    assert "100000" in response.json["message"]


@pytest.mark.parametrize(
    "path", [SESSIONS + "?after=x", SESSIONS + "?limit=0", SESSIONS + "?limit=1&limit=2", "/v1/models?page=2"]
)
def test_an_unknown_or_wrong_query_parameter_is_a_400(api: Api, path: str) -> None:
    check_shape(api.client.get(path), 400)


def test_a_thousand_problems_make_a_short_answer_that_does_not_echo(api: Api) -> None:
    secret = "s3cr3t"
    body = {f"{'x' * 80}{i}": secret for i in range(1000)}
    body |= {"prompt": secret, "num_samples": secret}
    response = api.client.post(f"{api.session()}:sample", json=body)
    check_shape(response, 400)
    assert secret not in response.text
    assert len(response.json["errors"]) == 10
    assert response.json["message"].endswith("(and 1001 more)")


def test_an_unforeseen_failure_is_a_500_that_tells_nothing(app: Flask, api: Api) -> None:
    def fail() -> NoReturn:
        raise RuntimeError("/secret/path")

    app.view_functions["models.list_models"] = fail
    response = api.client.get("/v1/models")
    check_shape(response, 500)
    assert "secret" not in response.text
