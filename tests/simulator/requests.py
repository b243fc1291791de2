"""Requests that carry a number where the product does not look, and results that bring one back."""

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np

from domain.checkpoint import Checkpoint, CheckpointRequest
from domain.forward_backward import CrossEntropy, ForwardBackwardRequest, ForwardBackwardResult
from domain.operation import Operation, OperationKind
from domain.optim_step import OptimStepRequest, OptimStepResult
from domain.sample import SampleRequest, SampleResult, SamplingParams
from domain.weights_sync import WeightsSyncRequest, WeightsSyncResult

K = OperationKind
NO_INTEGERS, NO_FLOATS = np.zeros(0, np.int32), np.zeros(0, np.float32)
NO_OFFSETS = np.zeros(1, np.int64)
SAMPLING = SamplingParams()

RESULTS: dict[OperationKind, tuple[type[Any], Callable[[Any], int]]] = {
    K.FORWARD_BACKWARD: (ForwardBackwardResult, lambda result: int(result.loss)),
    K.OPTIM_STEP: (OptimStepResult, lambda result: int(result.metrics["weights"])),
    K.SAMPLE: (SampleResult, lambda result: int(result.step)),
    K.WEIGHTS_SYNC: (WeightsSyncResult, lambda result: int(result.step)),
    K.TRAINING_CHECKPOINT: (Checkpoint, lambda result: int(result.step)),
}


def request_of(kind: OperationKind, number: int) -> msgspec.Struct:
    match kind:
        case K.FORWARD_BACKWARD:
            return ForwardBackwardRequest(
                offsets=NO_OFFSETS, tokens_T=NO_INTEGERS, targets_T=NO_INTEGERS, weights_T=NO_FLOATS,
                loss=CrossEntropy(), horizon=number,
            )  # fmt: skip
        case K.OPTIM_STEP:
            return OptimStepRequest(learning_rate=float(number))
        case K.SAMPLE:
            return SampleRequest(prompts=(), num_samples=1, params=SAMPLING, seed=number)
        case K.WEIGHTS_SYNC:
            return WeightsSyncRequest()
    return CheckpointRequest()


def value_of(operation: Operation, read: Callable[[Operation, type[Any]], Any]) -> int:
    kind, number = RESULTS[operation.kind]
    return number(read(operation, kind))
