"""The table of operation kinds: what each is asked with, what it answers, and what it does to its session.

A new kind has an entry here, one in the table of each API that offers it (schemas/native.py,
schemas/together/calls.py), and its engine call in workers/tasks.py, or in workers/changes.py if it changes the adapter.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from domain.checkpoint import Checkpoint, CheckpointRequest
from domain.forward_backward import ForwardBackwardRequest, ForwardBackwardResult
from domain.metrics import (
    NO_METRICS,
    OperationMetrics,
    metrics_of_forward_backward,
    metrics_of_optim_step,
    metrics_of_sample,
)
from domain.operation import ErrorCode, OperationError, OperationKind
from domain.optim_step import OptimStepRequest, OptimStepResult
from domain.sample import SampleRequest, SampleResult
from domain.weights_sync import WeightsSyncRequest, WeightsSyncResult


class KindSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What is the same for all operations of a kind.

    `time_limit` is a field of TimeLimits, None where there is no limit. An operation that `only_reads` the weights runs
    together with its neighbours in the session's queue that do. One that `changes_the_adapter` does so when it
    completes, and where it `changes_it_when_not_finite`, also when it fails as NON_FINITE. `metrics` takes the request
    and the result.
    """

    request: type[msgspec.Struct]
    result: type[msgspec.Struct]
    time_limit: str | None
    only_reads: bool = False
    changes_the_adapter: bool = False
    changes_it_when_not_finite: bool = False
    metrics: Callable[[Any, Any], OperationMetrics] = lambda *_: NO_METRICS

    def changed_the_adapter(self, error: OperationError | None) -> bool:
        """Whether an operation that ended with this error, or with none, did, and has to be run again to restore it."""
        if error is None:
            return self.changes_the_adapter
        return self.changes_it_when_not_finite and error.code is ErrorCode.NON_FINITE


class Empty(msgspec.Struct, frozen=True):
    """The request and the result of the two ends of a session, which no user asks for."""


_FORWARD_BACKWARD = KindSpec(
    request=ForwardBackwardRequest,
    result=ForwardBackwardResult,
    time_limit="forward_backward_timeout",
    changes_the_adapter=True,
    metrics=metrics_of_forward_backward,
)
_CHECKPOINT = KindSpec(request=CheckpointRequest, result=Checkpoint, time_limit="checkpoint_timeout")

K = OperationKind

KINDS: dict[OperationKind, KindSpec] = {
    K.CREATE_SESSION: KindSpec(request=Empty, result=Empty, time_limit="create_session_timeout"),
    K.SAMPLE: KindSpec(
        request=SampleRequest,
        result=SampleResult,
        time_limit="sample_timeout",
        only_reads=True,
        metrics=metrics_of_sample,
    ),
    K.FORWARD_BACKWARD: _FORWARD_BACKWARD,
    K.CUSTOM_FORWARD_BACKWARD: _FORWARD_BACKWARD,
    K.OPTIM_STEP: KindSpec(
        request=OptimStepRequest,
        result=OptimStepResult,
        time_limit="optim_step_timeout",
        changes_the_adapter=True,
        # It clears the gradients.
        changes_it_when_not_finite=True,
        metrics=metrics_of_optim_step,
    ),
    K.WEIGHTS_SYNC: KindSpec(
        request=WeightsSyncRequest,
        result=WeightsSyncResult,
        time_limit="weights_sync_timeout",
        changes_the_adapter=True,
    ),
    K.TRAINING_CHECKPOINT: _CHECKPOINT,
    K.INFERENCE_CHECKPOINT: _CHECKPOINT,
    # All it does is to free what the session had.
    K.STOP_SESSION: KindSpec(request=Empty, result=Empty, time_limit=None),
}
