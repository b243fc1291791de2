"""Creating a session: bounds, defaults, and what comes back."""

from typing import Any

import pytest

from domain.limits import Limits
from domain.model import ModelCard
from domain.session import LoraConfig, Session, SessionSpec, SessionStatus
from schemas.sessions import CreateSessionSchema, SessionListSchema, SessionSchema, session_spec, session_view
from tests.schemas.refusals import fields_of

CARD = ModelCard(name="org/tiny", vocab_size=64, context_length=32)


def spec_of(**body: Any) -> SessionSpec:
    return session_spec(CreateSessionSchema().load({"base_model": "org/tiny", **body}), CARD, Limits(), "an owner")


def test_decimal_strings_are_taken_for_rank_and_alpha() -> None:
    lora = spec_of(lora_config={"rank": "8", "alpha": "32", "dropout": 0}).lora
    assert lora == LoraConfig(rank=8, alpha=32, dropout=0.0)


def test_each_session_draws_its_own_seed() -> None:
    assert len({spec_of().seed for _ in range(3)}) == 3


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"base_model": ""}, "base_model"),
        ({"base_model": 5}, "base_model"),
        ({"base_model": "m" * 257}, "base_model"),
        ({"checkpoint_id": 5}, "checkpoint_id"),
        ({"lora_config": {"rank": 0}}, "lora_config.rank"),
        ({"lora_config": {"rank": 257}}, "lora_config.rank"),
        ({"lora_config": {"rank": 10**6}}, "lora_config.rank"),
        ({"lora_config": {"rank": 8.0}}, "lora_config.rank"),
        ({"lora_config": {"alpha": 0}}, "lora_config.alpha"),
        ({"lora_config": {"alpha": -16}}, "lora_config.alpha"),
        ({"lora_config": {"dropout": 1.0}}, "lora_config.dropout"),
        ({"lora_config": {"dropout": -0.1}}, "lora_config.dropout"),
        ({"lora_config": {"r": 8}}, "lora_config.r"),
        ({"lora_config": []}, "lora_config"),
    ],
)
def test_a_wrong_field_is_named(body: dict[str, Any], field: str) -> None:
    assert fields_of(lambda: spec_of(**body)) == [field]


def test_a_session_shows_its_config_whole_with_numbers_as_numbers() -> None:
    session = Session(
        id="abc",
        spec=SessionSpec(base_model=CARD, lora=LoraConfig(), seed=1),
        status=SessionStatus.ERROR,
        step=3,
        created_at=1772357400.25,
        updated_at=1772357401.0,
        worker_id="w",
        reason="its worker is gone",
    )
    assert SessionSchema().dump(session_view(session)) == {
        "session_id": "abc",
        "status": "TRAINING_SESSION_STATUS_ERROR",
        "base_model": "org/tiny",
        "step": 3,
        "created_at": "2026-03-01T09:30:00.250Z",
        "updated_at": "2026-03-01T09:30:01.000Z",
        "lora_config": {"rank": 8, "alpha": 16, "dropout": 0.05},
        "reason": "its worker is gone",
    }


def test_an_unspecified_status_filters_nothing() -> None:
    page = {"status": None, "limit": 20, "offset": 0}
    assert SessionListSchema().load({}) == page
    assert SessionListSchema().load({"status": "TRAINING_SESSION_STATUS_UNSPECIFIED"}) == page


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"limit": "0"}, "limit"),
        ({"limit": "101"}, "limit"),
        ({"limit": "abc"}, "limit"),
        ({"limit": ""}, "limit"),
        ({"offset": "-1"}, "offset"),
        ({"offset": "1.5"}, "offset"),
        ({"status": "RUNNING"}, "status"),
        ({"status": ""}, "status"),
        ({"after": "x"}, "after"),
    ],
)
def test_a_wrong_query_is_named(query: dict[str, str], field: str) -> None:
    assert fields_of(lambda: SessionListSchema().load(query)) == [field]
