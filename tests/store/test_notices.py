"""A wait ends with the operation, not with the time."""

import threading
import time

from domain.operation import OperationKind, OperationStatus
from domain.optim_step import OptimStepRequest, OptimStepResult
from tests.store.conftest import Bench


def test_a_wait_returns_when_the_operation_ends(bench: Bench) -> None:
    session = bench.running_session()
    step = bench.store.operations.accept(session.id, OperationKind.OPTIM_STEP, OptimStepRequest())
    timer = threading.Timer(0.2, bench.run, (step.id, OptimStepResult(step=1, metrics={})))
    timer.start()
    waited = bench.store.operations.wait(session.id, step.id, OperationKind.OPTIM_STEP, seconds=30.0)
    timer.join()
    assert waited.status is OperationStatus.COMPLETED


def test_a_wait_gives_up_when_its_time_is_over(bench: Bench) -> None:
    session = bench.running_session()
    step = bench.store.operations.accept(session.id, OperationKind.OPTIM_STEP, OptimStepRequest())
    began = time.monotonic()
    waited = bench.store.operations.wait(session.id, step.id, OperationKind.OPTIM_STEP, seconds=0.3)
    assert waited.status is OperationStatus.PENDING
    assert time.monotonic() - began >= 0.3
