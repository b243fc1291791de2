"""The engine calls that change an adapter: made when an operation runs, and again when it is replayed."""

from collections.abc import Callable
from concurrent.futures import Future
from hashlib import blake2b
from typing import Any

from domain.forward_backward import ForwardBackwardRequest
from domain.operation import OperationKind
from domain.optim_step import OptimStepRequest
from domain.weights_sync import WeightsSyncRequest
from workers.engine.engine import Engine


def change(
    engine: Engine, kind: OperationKind, session_id: str, request: Any, session_seed: int, seq: int
) -> "Future[Any]":
    """The call of an operation of this kind; `seq` is its place among those of its session."""
    return CALLS[kind](engine, session_id, request, call_seed(session_seed, seq))


def _forward_backward(engine: Engine, session_id: str, request: ForwardBackwardRequest, seed: int) -> "Future[Any]":
    return engine.forward_backward(session_id, request, seed)


def _optim_step(engine: Engine, session_id: str, request: OptimStepRequest, _: int) -> "Future[Any]":
    return engine.optim_step(session_id, request)


def _weights_sync(engine: Engine, session_id: str, _: WeightsSyncRequest, __: int) -> "Future[Any]":
    return engine.weights_sync(session_id)


CALLS: dict[OperationKind, Callable[[Engine, str, Any, int], "Future[Any]"]] = {
    OperationKind.FORWARD_BACKWARD: _forward_backward,
    OperationKind.CUSTOM_FORWARD_BACKWARD: _forward_backward,
    OperationKind.OPTIM_STEP: _optim_step,
    OperationKind.WEIGHTS_SYNC: _weights_sync,
}


def call_seed(session_seed: int, seq: int) -> int:
    """The seed of an operation's dropout masks: the same whenever the operation is run."""
    digest = blake2b(f"{session_seed}/{seq}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1
