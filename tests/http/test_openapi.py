"""The OpenAPI document: valid, complete, and its examples hold against their own schemas."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from flask import Flask
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from referencing import Registry
from referencing.jsonschema import DRAFT202012

from app import create_app
from settings import Settings
from store.store import Store
from tests.http.conftest import Api

ROOT = "urn:openapi"
LOSSES = ("CROSS_ENTROPY", "GRPO", "IMPORTANCE_SAMPLING", "PPO", "CISPO", "DRO", "DPPO")


@pytest.fixture(params=["", "/together"])
def prefix(request: pytest.FixtureRequest) -> str:
    prefix: str = request.param
    return prefix


@pytest.fixture
def native(api: Api) -> dict[str, Any]:
    document: dict[str, Any] = api.client.get("/openapi.json").json
    return document


@pytest.fixture
def document(api: Api, prefix: str) -> dict[str, Any]:
    document: dict[str, Any] = api.client.get(f"{prefix}/openapi.json").json
    return document


def schemas_in(node: Any) -> Iterator[dict[str, Any]]:
    """Every object below `node` that carries examples of itself and says what it is."""
    if isinstance(node, dict):
        if "examples" in node and isinstance(node["examples"], list):
            yield node
        for value in node.values():
            yield from schemas_in(value)
    elif isinstance(node, list):
        for value in node:
            yield from schemas_in(value)


def media_in(node: Any) -> Iterator[tuple[dict[str, Any], Any]]:
    """(schema, example) of every media type below `node`."""
    if isinstance(node, dict):
        if "schema" in node and "example" in node:
            yield node["schema"], node["example"]
        for value in node.values():
            yield from media_in(value)


def check(document: dict[str, Any], schema: dict[str, Any], example: Any) -> None:
    registry: Registry[Any] = Registry().with_resource(ROOT, DRAFT202012.create_resource(document))
    absolute = _absolute(schema)
    Draft202012Validator(absolute, registry=registry, format_checker=Draft202012Validator.FORMAT_CHECKER).validate(
        example
    )


def _absolute(node: Any) -> Any:
    if isinstance(node, dict):
        return {key: f"{ROOT}{value}" if key == "$ref" else _absolute(value) for key, value in node.items()}
    return [_absolute(value) for value in node] if isinstance(node, list) else node


def test_every_schema_is_valid_and_closed_where_it_is_read(document: dict[str, Any]) -> None:
    for name, schema in document["components"]["schemas"].items():
        Draft202012Validator.check_schema(schema)
        if name.endswith(("Body", "Params", "Config", "Inputs")):
            assert schema["additionalProperties"] is False, name


def test_every_example_holds_against_its_schema(document: dict[str, Any]) -> None:
    shown = 0
    for schema in schemas_in(document):
        for example in schema["examples"]:
            check(document, schema, example)
            shown += 1
    for schema, example in media_in(document):
        check(document, schema, example)
        shown += 1
    assert shown > 40


def test_a_wrong_example_would_be_noticed(native: dict[str, Any]) -> None:
    schema = native["components"]["schemas"]["Sequence"]
    good = {"tokens": [1], "logprobs": [-0.5], "stop_reason": "stop"}
    check(native, schema, good)
    for wrong in ({"tokens": [1.5]}, {"logprobs": ["-0.5"]}, {"stop_reason": "STOP"}):
        assert not Draft202012Validator(schema).is_valid({**good, **wrong})


def test_every_default_is_of_its_own_schema(document: dict[str, Any]) -> None:
    for name, schema in document["components"]["schemas"].items():
        for field, described in schema["properties"].items():
            if "default" in described:
                check(document, described, described["default"])
                assert not isinstance(described["default"], str) or "enum" in described, (name, field)


def test_every_route_is_documented_with_its_method(app: Flask, document: dict[str, Any], prefix: str) -> None:
    outside = ("/static", "/console", "/docs", f"{prefix}/openapi.json", "/files", "/together/v1/shaping")
    for rule in app.url_map.iter_rules():
        if rule.rule == "/" or rule.rule.startswith(outside) or rule.rule.startswith("/together") != bool(prefix):
            continue
        path = rule.rule.replace("<id:", "{").replace(">", "}")
        for method in set(rule.methods or ()) - {"HEAD", "OPTIONS"}:
            assert method.lower() in document["paths"][path], path


def test_every_operation_names_its_errors_and_itself(document: dict[str, Any], prefix: str) -> None:
    names = []
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if method == "parameters":
                continue
            names.append(operation["operationId"])
            assert {"400", "500"} <= set(operation["responses"]), path
            assert operation["summary"]
            if path.startswith(f"{prefix}/v1"):
                assert {"401", "429", "503"} <= set(operation["responses"]), path
            if "_id}" in path:
                assert "404" in operation["responses"], path
            if "requestBody" in operation:
                assert {"413", "415", "422"} <= set(operation["responses"]), path
    assert len(names) == len(set(names)) == (31 if prefix else 26)


def test_every_error_is_documented_with_the_requests_id(document: dict[str, Any]) -> None:
    assert set(document["components"]["schemas"]["Error"]["required"]) == {"code", "message", "request_id"}
    for name, response in document["components"]["responses"].items():
        assert "X-Request-ID" in response["headers"], name


def test_logprobs_are_numbers_and_enums_are_explicit(native: dict[str, Any]) -> None:
    schemas = native["components"]["schemas"]
    assert schemas["Sequence"]["properties"]["logprobs"]["items"] == {"type": "number"}
    assert schemas["Session"]["properties"]["status"]["enum"][0] == "TRAINING_SESSION_STATUS_CREATING"
    assert schemas["LossConfig"]["properties"]["type"]["enum"] == [f"LOSS_TYPE_{name}" for name in LOSSES]


def test_security_is_bearer_and_needed_where_there_are_keys(
    document: dict[str, Any], settings: Settings, store: Store
) -> None:
    assert document["openapi"].startswith("3.1")
    (scheme,) = document["components"]["securitySchemes"].values()
    assert (scheme["type"], scheme["scheme"]) == ("http", "bearer")
    assert document["security"] == [{}, {"bearer": []}]
    locked = create_app(msgspec.structs.replace(settings, api_keys=("one",)), store).test_client()
    described: Any = locked.get("/openapi.json").json
    assert described["security"] == [{"bearer": []}]
    assert described["paths"]["/healthz"]["get"]["security"] == []
