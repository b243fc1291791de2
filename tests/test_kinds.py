"""The table of operation kinds has every kind, and what follows from it has every kind that it should."""

import importlib

import pytest

from domain.kinds import KINDS
from domain.operation import ErrorCode, OperationError, OperationKind
from domain.time_limits import TimeLimits
from schemas.native import NATIVE
from schemas.together.calls import TOGETHER
from workers.celery_app import app
from workers.changes import CALLS

K = OperationKind


def test_every_kind_has_its_facts() -> None:
    assert set(KINDS) == set(OperationKind)


def test_every_kind_has_its_task() -> None:
    importlib.import_module("workers.tasks")
    assert {kind.task_name for kind in OperationKind} <= set(app.tasks)


def test_every_kind_that_a_user_asks_for_is_offered_by_an_api() -> None:
    assert NATIVE.keys() | TOGETHER.keys() == {kind for kind in OperationKind if kind.is_public}


def test_every_time_limit_is_of_some_kind() -> None:
    assert {facts.time_limit for facts in KINDS.values()} - {None} == set(TimeLimits.__struct_fields__)


def test_what_is_replayed_is_what_has_an_engine_call_that_can_be_made_again() -> None:
    assert {kind for kind, facts in KINDS.items() if facts.changes_the_adapter} == set(CALLS)


@pytest.mark.parametrize(
    ("kind", "error", "changed"),
    [
        (K.SAMPLE, None, False),
        (K.FORWARD_BACKWARD, None, True),
        (K.FORWARD_BACKWARD, ErrorCode.NON_FINITE, False),
        (K.CUSTOM_FORWARD_BACKWARD, None, True),
        (K.OPTIM_STEP, None, True),
        (K.OPTIM_STEP, ErrorCode.NON_FINITE, True),
        (K.OPTIM_STEP, ErrorCode.INVALID_INPUT, False),
        (K.WEIGHTS_SYNC, None, True),
        (K.TRAINING_CHECKPOINT, None, False),
        (K.INFERENCE_CHECKPOINT, None, False),
        (K.CREATE_SESSION, None, False),
        (K.STOP_SESSION, None, False),
    ],
)
def test_what_is_run_again_to_restore_an_adapter(kind: OperationKind, error: ErrorCode | None, changed: bool) -> None:
    failed = OperationError(error, "why") if error else None
    assert KINDS[kind].changed_the_adapter(failed) is changed
