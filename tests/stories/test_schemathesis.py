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


@pytest.fixture(scope="module")
def session(http: httpx.Client) -> Session:
    return Session(http)


# The document of an app that is never asked anything else; the requests go to the running stack.
DOCUMENT = create_app(Settings(), open_store(Settings())).test_client().get("/openapi.json").json
api = schemathesis.openapi.from_dict(DOCUMENT)


@api.parametrize()
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
def test_every_answer_is_documented(case: schemathesis.Case, stack: Stack) -> None:
    check(case, stack)


@api.include(path_regex="session_id").exclude(path_regex=":stop").parametrize()
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
def test_every_answer_about_a_real_session_is_documented(
    case: schemathesis.Case, stack: Stack, session: Session
) -> None:
    case.path_parameters["session_id"] = session.path.rpartition("/")[2]
    check(case, stack)


def check(case: schemathesis.Case, stack: Stack) -> None:
    response = case.call(base_url=stack.url)
    case.validate_response(response, checks=CONFORMANCE)
