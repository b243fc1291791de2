"""What the disturbed run must equal: the same operations in order on an engine that nobody disturbs."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from contract.limits import Limits
from contract.operation import OperationFailedError
from contract.sample import SampleResult
from contract.session import SessionSpec
from schemas.forward_backward import ForwardBackwardBodySchema, forward_backward_request
from schemas.optim_step import OptimStepBodySchema, optim_step_request
from schemas.sampling import SampleBodySchema, sample_request
from tests.chaos.client import Run
from tests.chaos.plan import Planned
from tests.stories.client import Json
from workers.engine.adapter_state import VECTORS, AdapterState
from workers.engine.engine import Engine
from workers.residency import call_seed

# A sample runs in a crowd here and alone there: the same tokens, logprobs to fp32 rounding.
LOGPROB_TOLERANCE = 1e-5


class Undisturbed(NamedTuple):
    """The ends that operations should have, and the adapter after each step that was taken."""

    ends: list[Any]
    states: dict[int, AdapterState]


def undisturbed(engine: Engine, model: Path, spec: SessionSpec, run: Run) -> Undisturbed:
    engine.create_adapter(run.session_id, model, spec.lora, spec.seed).result()
    ends: list[Any] = []
    states: dict[int, AdapterState] = {}
    # Operation 0 of a session creates it, so that the first planned one has seq 1.
    for seq, operation in enumerate(run.operations, start=1):
        ends.append(_run(engine, run.session_id, spec, operation, seq))
        if operation.kind == "optim-step":
            state = engine.copy_adapter(run.session_id).result()
            states[int(state.counts[0])] = state
    engine.drop_adapter(run.session_id).result()
    return Undisturbed(ends, states)


def _run(engine: Engine, session_id: str, spec: SessionSpec, operation: Planned, seq: int) -> Any:
    """The result, or the error code that the operation fails with."""
    card, limits = spec.base_model, Limits()
    try:
        if operation.kind == "sample":
            sample = sample_request(SampleBodySchema().load(operation.body), card, limits)
            return engine.sample(session_id, sample).result()
        if operation.kind == "optim-step":
            return engine.optim_step(
                session_id, optim_step_request(OptimStepBodySchema().load(operation.body))
            ).result()
        training = forward_backward_request(ForwardBackwardBodySchema().load(operation.body), card, limits)
        return engine.forward_backward(session_id, training, call_seed(spec.seed, seq)).result()
    except OperationFailedError as failed:
        return failed.error.code.value


def differences(run: Run, expected: Undisturbed) -> list[str]:
    """One line for each operation that did not end as it should have."""
    found = []
    for number, (end, wanted) in enumerate(zip(run.ends, expected.ends, strict=True)):
        if not _equal(end, wanted):
            found.append(f"{run.name} operation {number} ({run.operations[number].kind}): {str(end)[:300]} != {wanted}")
    return found


def _equal(end: Json, wanted: Any) -> bool:
    if isinstance(wanted, str):
        return bool(end.get("error", {}).get("code", "").removeprefix("TRAINING_OPERATION_ERROR_CODE_") == wanted)
    if "data" not in end:
        return False
    if isinstance(wanted, SampleResult):
        return all(map(_equal_sequence, end["data"]["sequences"], wanted.sequences))
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
    wanted = expected.states[int(state.counts[0])]
    return not all(getattr(state, name).equal(getattr(wanted, name)) for name in VECTORS)
