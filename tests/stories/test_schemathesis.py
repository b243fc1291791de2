"""Whatever is sent, the running API answers as its OpenAPI document says, and never with a fault of its own."""

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from app import create_app
from settings import Settings
from stack.stack import Stack
from store.store import open_store
from tests.stories.client import Session

CONFORMANCE = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    response_headers_conformance,
    negative_data_rejection,
    unsupported_method,
]


# The documents of an app that is never asked anything else; the requests go to the running stack.
APP = create_app(Settings(), open_store(Settings())).test_client()
native, together = (
    schemathesis.openapi.from_dict(APP.get(path).json) for path in ("/openapi.json", "/together/openapi.json")
)
some = settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
# Together's API has twice as many calls, on the same parsers and fields.
few = settings(some, max_examples=8)


@pytest.fixture(scope="module")
def session_id(http: httpx.Client) -> str:
    return Session(http).path.rpartition("/")[2]


@pytest.fixture(scope="module")
def publishing_id(http: httpx.Client) -> str:
    """A session of Together's API."""
    resources = http.post("/together/v1/rl/model-resources", json={"base_model": "tiny"}).json()
    answer = http.post("/together/v1/rl/training-sessions", json={"model_resources_id": resources["id"]})
    made: str = answer.json()["id"]
    return made


@native.parametrize()
@some
def test_every_answer_is_documented(case: schemathesis.Case, stack: Stack) -> None:
    check(case, stack)


@native.include(path_regex="session_id").exclude(path_regex=":stop").parametrize()
@some
def test_every_answer_about_a_real_session_is_documented(
    case: schemathesis.Case, stack: Stack, session_id: str
) -> None:
    case.path_parameters["session_id"] = session_id
    check(case, stack)


@together.parametrize()
@few
def test_every_answer_of_togethers_api_is_documented(case: schemathesis.Case, stack: Stack) -> None:
    check(case, stack)


@together.include(path_regex="session_id").exclude(path_regex="/stop").parametrize()
@few
def test_every_answer_of_togethers_api_about_a_real_session_is_documented(
    case: schemathesis.Case, stack: Stack, publishing_id: str
) -> None:
    case.path_parameters["session_id"] = publishing_id
    check(case, stack)


def check(case: schemathesis.Case, stack: Stack) -> None:
    response = case.call(base_url=stack.url)
    case.validate_response(response, checks=CONFORMANCE)
