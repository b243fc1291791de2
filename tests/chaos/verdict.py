"""What the disturbed run must equal: the same operations in order on an engine that nobody disturbs."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from domain.limits import Limits
from domain.operation import OperationFailedError
from domain.sample import SampleResult
from domain.session import SessionSpec
from schemas.forward_backward import ForwardBackwardBodySchema, forward_backward_request
from schemas.optim_step import OptimStepBodySchema, optim_step_request
from schemas.sampling import SampleBodySchema, sample_request
from settings import Settings
from tests.chaos.client import Told
from tests.chaos.plan import Planned
from tests.stories.client import Json
from workers.engine.adapters.export import AdapterExport
from workers.engine.adapters.state import VECTORS, AdapterState
from workers.engine.engine import Engine
from workers.residency import call_seed

# A sample runs in a crowd here and alone there: the same tokens, logprobs to fp32 rounding.
LOGPROB_TOLERANCE = 1e-5


class Undisturbed(NamedTuple):
    """The ends that a chapter's operations should have (of a checkpoint: what it should hold), and the adapter at
    the beginning and after each step that was taken."""

    ends: list[Any]
    states: dict[int, AdapterState]


def undisturbed(engine: Engine, model: Path, spec: SessionSpec, told: Told, origin: AdapterState | None) -> Undisturbed:
    engine.create_adapter(told.session_id, model, spec.lora, spec.seed, origin).result()
    ends: list[Any] = []
    states = {origin.step: origin} if origin else {}
    # Operation 0 of a session creates it, so that the first planned one has seq 1.
    for seq, operation in enumerate(told.chapter.operations, start=1):
        ends.append(_run(engine, told.session_id, spec, operation, seq))
        if operation.kind == "optim-step":
            state = engine.copy_adapter(told.session_id).result()
            states[state.step] = state
    engine.drop_adapter(told.session_id).result()
    return Undisturbed(ends, states)


def _run(engine: Engine, session_id: str, spec: SessionSpec, operation: Planned, seq: int) -> Any:
    """The result, or the error code that the operation fails with."""
    card, limits, body = spec.base_model, Limits(), operation.body
    try:
        match operation.kind:
            case "sample":
                sample = sample_request(SampleBodySchema().load(body), card, limits)
                return engine.sample(session_id, sample).result()
            case "optim-step":
                return engine.optim_step(session_id, optim_step_request(OptimStepBodySchema().load(body))).result()
            case "training-checkpoint":
                return engine.copy_adapter(session_id).result().without_gradients()
            case "inference-checkpoint":
                return engine.export_adapter(session_id).result()
        loaded = ForwardBackwardBodySchema().load(body)
        training = forward_backward_request(loaded, card, limits, Settings().horizon)
        return engine.forward_backward(session_id, training, call_seed(spec.seed, seq)).result()
    except OperationFailedError as failed:
        return failed.error.code.value


def differences(told: Told, expected: Undisturbed) -> list[str]:
    """One line for each operation that did not end as it should have."""
    found = []
    for number, (end, wanted) in enumerate(zip(told.ends, expected.ends, strict=True)):
        if not _equal(end, wanted):
            kind = told.chapter.operations[number].kind
            found.append(f"{told.name} operation {number} ({kind}): {str(end)[:300]} != {str(wanted)[:300]}")
    return found


def _equal(end: Json, wanted: Any) -> bool:
    if isinstance(wanted, str):
        return bool(end.get("error", {}).get("code", "").removeprefix("TRAINING_OPERATION_ERROR_CODE_") == wanted)
    if "data" not in end:
        return False
    if isinstance(wanted, SampleResult):
        return all(map(_equal_sequence, end["data"]["sequences"], wanted.sequences))
    if isinstance(wanted, AdapterState | AdapterExport):
        return bool(end["data"]["checkpoint_id"] == end["operation_id"])
    names = [name for name in ("loss", "step", "metrics") if hasattr(wanted, name)]
    return all(end["data"][name] == getattr(wanted, name) for name in names)


def _equal_sequence(sequence: Json, wanted: Any) -> bool:
    same = sequence["tokens"] == wanted.tokens.tolist() and sequence["stop_reason"] == wanted.stop_reason
    return same and bool(np.allclose(sequence["logprobs"], wanted.logprobs, rtol=0, atol=LOGPROB_TOLERANCE))


def weights_differ(snapshot: bytes | None, expected: Undisturbed) -> bool:
    """Whether the last snapshot is not, bit for bit, the undisturbed adapter after the same step."""
    if snapshot is None:
        return False
    state = AdapterState.from_bytes(snapshot)
    wanted = expected.states[state.step]
    return not all(getattr(state, name).equal(getattr(wanted, name)) for name in VECTORS)
