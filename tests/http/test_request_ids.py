"""A request's id: the caller's own when it is a sane one, in the answer, the error and the log."""

import io
import json
import logging
from collections.abc import Iterator
from typing import NoReturn

import pytest
from flask import Flask

from app.request_id import LOG_FORMAT, InLogs
from logs import configure_logging
from tests.http.conftest import SESSIONS, Api

HEADER = "X-Request-ID"


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    """What the API logs, as its process is set up to."""
    before, stream = logging.getLogger().handlers[:], io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    configure_logging("INFO", LOG_FORMAT, InLogs())
    yield stream
    logging.getLogger().handlers[:] = before


@pytest.mark.parametrize("request_id", ["a", "01J8Z6W3", "Root=1-67891233-abcdef012345", "x" * 128])
def test_a_sane_id_is_echoed(api: Api, request_id: str) -> None:
    for path in ("/healthz", "/docs", SESSIONS, "/nothing"):
        assert api.client.get(path, headers={HEADER: request_id}).headers[HEADER] == request_id


@pytest.mark.parametrize("request_id", ["", "a b", "x" * 129, "é", 'a"b', "a\tb", "%(x)s"])
def test_any_other_is_replaced_by_a_new_one(api: Api, request_id: str) -> None:
    answers = [api.client.get(SESSIONS, headers={HEADER: request_id}) for _ in range(2)]
    made = {answer.headers[HEADER] for answer in answers}
    assert len(made) == 2
    assert request_id not in made
    assert all(len(each) == 36 for each in made)


@pytest.mark.parametrize(
    ("path", "status"), [("/nothing", 404), (f"{SESSIONS}?limit=0", 400), (f"{SESSIONS}/a:b", 404)]
)
def test_an_error_names_the_request(api: Api, path: str, status: int) -> None:
    answer = api.client.get(path, headers={HEADER: "mine"})
    assert (answer.status_code, answer.json["request_id"]) == (status, "mine")
    made = api.client.get(path)
    assert made.json["request_id"] == made.headers[HEADER]


def test_what_was_accepted_is_logged_under_the_id_with_the_operations(api: Api, log: io.StringIO) -> None:
    session = api.session()
    operation_id = api.sample(session, **{HEADER: "mine"})
    (line,) = [line for line in log.getvalue().splitlines() if operation_id in line]
    assert " mine " in line
    assert session.rpartition("/")[2] in line


def test_a_failure_is_logged_under_the_id_that_its_answer_names(app: Flask, api: Api, log: io.StringIO) -> None:
    def fail() -> NoReturn:
        raise RuntimeError("secret")

    app.view_functions["models.list_models"] = fail
    answer = api.client.get("/v1/models")
    (line,) = [line for line in log.getvalue().splitlines() if "unforeseen error" in line]
    assert f" {answer.json['request_id']} " in line


def test_a_line_outside_of_any_request_is_written_too(log: io.StringIO) -> None:
    logging.getLogger("app").warning("no request here")
    assert " - app: no request here" in log.getvalue()


def test_a_line_of_json_carries_the_ids_as_fields(api: Api, log: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", log)
    configure_logging("INFO", LOG_FORMAT, InLogs(), form="json")
    session = api.session()
    operation_id = api.sample(session, **{HEADER: "mine"})
    try:
        raise ValueError('a "quoted"\nreason')
    except ValueError:
        logging.getLogger("app").exception("failed")
    accepted, failed = [json.loads(line) for line in log.getvalue().splitlines()][-2:]
    assert accepted["operation_id"] == operation_id
    assert (accepted["session_id"], accepted["request_id"]) == (session.rpartition("/")[2], "mine")
    assert (accepted["level"], accepted["logger"]) == ("INFO", "app.operations")
    assert "request_id" not in failed and "reason" in failed["exception"]
