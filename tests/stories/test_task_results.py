"""What Celery's own tools say of operations: the same as the polling endpoint."""

import json
import os
import subprocess
import sys
from uuid import uuid4

import httpx
import numpy as np
import pytest
from celery import Celery, states
from celery.exceptions import TimeoutError as NotReadyError
from celery.result import AsyncResult

from domain.operation import ErrorCode, OperationFailedError
from stack.process import ROOT
from stack.stack import Stack
from testing.bodies import sample_body, step_body, whole
from tests.stories.client import Session
from tests.waiting import eventually

PREFIX = "TRAINING_OPERATION_ERROR_CODE_"


@pytest.fixture(scope="module")
def environment(stack: Stack) -> dict[str, str]:
    """Of a process beside the stack's."""
    settings = stack.plan.settings
    return {"CELERITY_REDIS_URL": settings.embedded_url_file.read_text(), "DATA_DIR": str(settings.data_dir)}


@pytest.fixture
def celery(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Celery:
    """Any Celery app that names the backend, in a process that is no worker."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return Celery("reader", backend="workers.backend.OperationBackend", set_as_current=False)


def id_of(path: str) -> str:
    return path.rpartition("/")[2]


def test_a_completed_operation_is_a_success_with_the_endpoints_data(http: httpx.Client, celery: Celery) -> None:
    session = Session(http)
    path = session.submit("sample", sample_body([1, 2], 2, max_tokens=4, seed=1))
    result = AsyncResult(id_of(path), app=celery)
    answered = result.get(timeout=60, interval=0.05)
    for mine, theirs in zip(answered["sequences"], session.result(path)["sequences"], strict=True):
        assert (mine["tokens"], mine["stop_reason"]) == (theirs["tokens"], theirs["stop_reason"])
        # The endpoint writes as many digits as a float32 needs.
        assert np.array_equal(np.float32(mine["logprobs"]), np.float32(theirs["logprobs"]))
    assert (result.state, result.ready(), result.successful(), result.failed()) == (states.SUCCESS, True, True, False)
    assert result.name == "sample" and result.exists()
    summary = next(each for each in http.get(f"{session.path}/operations").json())
    assert result.date_done.isoformat(timespec="milliseconds").replace("+00:00", "Z") == summary["ended_at"]


@pytest.mark.parametrize("kind", ["forward-backward", "optim-step", "training-checkpoint"])
def test_every_kind_has_its_result_as_plain_data(http: httpx.Client, celery: Celery, kind: str) -> None:
    session = Session(http)
    body = {"samples": [whole([1, 2, 3])], "loss": {"type": "LOSS_TYPE_CROSS_ENTROPY"}}
    path = session.submit("forward-backward", body)
    if kind != "forward-backward":
        path = session.submit(kind, step_body() if kind == "optim-step" else {})
    data, answered = session.result(path), AsyncResult(id_of(path), app=celery).get(timeout=60)
    json.dumps(answered)
    shared = {"loss", "step", "metrics"} & data.keys()
    assert {name: answered[name] for name in shared} == {name: data[name] for name in shared}
    assert shared or answered["id"] == data["checkpoint_id"]


def test_a_failed_operation_raises_the_endpoints_code_and_message(http: httpx.Client, celery: Celery) -> None:
    session = Session(http)
    path = session.submit("optim-step", step_body())
    result = AsyncResult(id_of(path), app=celery)
    with pytest.raises(OperationFailedError) as raised:
        result.get(timeout=60, interval=0.05)
    error = session.error(path)
    assert (PREFIX + raised.value.error.code, raised.value.error.message) == (error["code"], error["message"])
    assert (result.state, result.failed(), result.ready()) == (states.FAILURE, True, True)
    kept = result.get(propagate=False)
    assert isinstance(kept, OperationFailedError) and kept.error.code is ErrorCode.INVALID_INPUT


def test_what_runs_is_started_and_what_waits_behind_it_pending_or_cancelled(http: httpx.Client, celery: Celery) -> None:
    session = Session(http, "broad")
    long = session.submit("sample", sample_body([1, 2], 16, max_tokens=500, temperature=2))
    waiting = session.submit("optim-step", step_body())
    running, behind = (AsyncResult(id_of(path), app=celery) for path in (long, waiting))
    eventually(lambda: running.state != states.PENDING)
    assert (running.state, running.ready()) == (states.STARTED, False)
    assert (behind.state, behind.ready(), behind.exists()) == (states.PENDING, False, True)
    with pytest.raises(NotReadyError):
        behind.get(timeout=0)
    http.post(f"{session.path}/operations/{id_of(waiting)}:cancel").raise_for_status()
    assert behind.failed() and behind.result.error.code is ErrorCode.CANCELLED
    http.post(f"{session.path}:stop").raise_for_status()


def test_an_unknown_id_is_pending_as_everywhere_in_celery_and_does_not_exist(celery: Celery) -> None:
    result = AsyncResult(str(uuid4()), app=celery)
    assert (result.state, result.ready(), result.exists()) == (states.PENDING, False, False)


def test_celerys_own_command_reads_a_result(http: httpx.Client, environment: dict[str, str]) -> None:
    session = Session(http)
    path = session.submit("sample", sample_body([1, 2], max_tokens=3))
    data = session.result(path)
    command = [sys.executable, "-m", "celery", "-A", "workers.celery_app", "result", id_of(path)]
    read = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, check=True, timeout=120
    )
    assert repr(data["sequences"][0]["tokens"]) in read.stdout
