"""The Celery tasks: one for each kind of operation, named after what it does.

A task's id is its operation's id, and its message carries nothing else. The task claims the
operation, hands the work to the engine and waits; the result backend finishes it.
"""

from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar
from uuid import uuid4

import msgspec
from celery import Task
from celery.exceptions import Ignore
from celery.worker.request import Request

from domain.kinds import KINDS
from domain.metrics import metrics_of_sample
from domain.operation import OperationFailedError, OperationKind
from domain.optim_step import OptimStepResult
from domain.sample import SampleRequest, ScoredPrompt
from store.claims import Claim, SuspectError
from store.dispatch import PROBE
from tracing import mark, span
from workers.backend import Outcome
from workers.celery_app import app
from workers.changes import CALLS, change
from workers.deadline import Deadline
from workers.process import current
from workers.retry import until_available
from workers.runtime import Runtime

T = TypeVar("T")
R = TypeVar("R", bound=msgspec.Struct)
Run = Callable[[Runtime, Claim], Outcome]


class UnacknowledgedRequest(Request):
    """The broker keeps no account of what is delivered (see docs/decisions/0006): there is nothing to acknowledge."""

    def acknowledge(self) -> None:
        self.acknowledged = True


def operation_task(*kinds: OperationKind) -> Callable[[Run], None]:
    """Makes the tasks of some kinds of operation from the function that runs a claimed one."""

    def register(run: Run) -> None:
        def task(self: Task) -> Outcome:
            runtime = current()
            try:
                with runtime.operation_lock.shared():
                    self.request.claim = _claim(runtime, self.request.id, beside_others=True)
                    return run(runtime, self.request.claim)
            except SuspectError:
                with runtime.operation_lock.exclusive():
                    self.request.claim = _claim(runtime, self.request.id, beside_others=False)
                    return run(runtime, self.request.claim)

        for kind in kinds:
            app.task(
                task, name=kind.task_name, bind=True, throws=(OperationFailedError,), Request=UnacknowledgedRequest
            )

    return register


def _claim(runtime: Runtime, operation_id: str, *, beside_others: bool) -> Claim:
    """Raises Ignore for a duplicate of a message, or one that came too late, and SuspectError."""
    claim, fence = None, str(uuid4())
    runtime.lost_operations.began(operation_id)
    try:
        claim = until_available(
            lambda: runtime.store.claims.claim(operation_id, runtime.worker_id, fence, beside_others=beside_others),
            f"claiming operation {operation_id}",
        )
    finally:
        if claim is None:
            runtime.lost_operations.ended(operation_id)
    if claim is None:
        raise Ignore
    mark(claim.session_id, operation_id)
    return claim


def requested(runtime: Runtime, claim: Claim, into: type[R]) -> R:
    """What the claimed operation asks for."""
    return runtime.retry.until_available(
        claim, lambda: runtime.store.claims.request(claim, into), "reading the request"
    )


def awaited(claim: Claim, deadline: Deadline, future: "Future[T]") -> T:
    """What the engine answers in time, its turn and its work a span of the operation's trace."""
    with span(f"engine {claim.kind}", claim.session_id, claim.operation_id):
        return deadline.answer(future)


@operation_task(OperationKind.CREATE_SESSION)
def create_session(runtime: Runtime, claim: Claim) -> Outcome:
    with runtime.residency.hold(claim):
        return Outcome(None)


@operation_task(OperationKind.SAMPLE)
def sample(runtime: Runtime, claim: Claim) -> Outcome:
    request = requested(runtime, claim, SampleRequest)
    with runtime.residency.hold(claim) as deadline:
        sampled = runtime.engine.sample(claim.session_id, request)
        try:
            prompts: tuple[ScoredPrompt, ...] = ()
            if request.prompt_logprobs or request.topk_prompt_logprobs:
                prompts = awaited(claim, deadline, runtime.engine.score_prompts(claim.session_id, request))
            result = msgspec.structs.replace(awaited(claim, deadline, sampled), prompts=prompts)
        finally:
            # Nobody waits for it any more when the prompts could not be scored.
            sampled.cancel()
        return Outcome(result, metrics_of_sample(request, result))


@operation_task(*CALLS)
def change_adapter(runtime: Runtime, claim: Claim) -> Outcome:
    request = requested(runtime, claim, KINDS[claim.kind].request)
    with runtime.residency.hold(claim) as deadline:
        called = change(runtime.engine, claim.kind, claim.session_id, request, claim.spec.seed, claim.seq)
        result = awaited(claim, deadline, called)
        snapshot = runtime.snapshots.after_step(claim, result.step) if isinstance(result, OptimStepResult) else None
        return Outcome(result, KINDS[claim.kind].metrics(request, result), snapshot)


@operation_task(OperationKind.TRAINING_CHECKPOINT)
def training_checkpoint(runtime: Runtime, claim: Claim) -> Outcome:
    with runtime.residency.hold(claim) as deadline:
        state = awaited(claim, deadline, runtime.engine.copy_adapter(claim.session_id))
    return Outcome(runtime.checkpoints.training(claim, state, deadline))


@operation_task(OperationKind.INFERENCE_CHECKPOINT)
def inference_checkpoint(runtime: Runtime, claim: Claim) -> Outcome:
    with runtime.residency.hold(claim) as deadline:
        adapter = awaited(claim, deadline, runtime.engine.export_adapter(claim.session_id))
    return Outcome(runtime.checkpoints.inference(claim, adapter, deadline))


@operation_task(OperationKind.STOP_SESSION)
def stop_session(runtime: Runtime, claim: Claim) -> Outcome:
    runtime.residency.release(claim.session_id)
    return Outcome(None)


def probe() -> None:
    current().probe.run()


app.task(probe, name=PROBE, Request=UnacknowledgedRequest)
