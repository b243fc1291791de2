"""What a disturbed session must equal: the same operations in order on an engine that nobody disturbs."""

from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from domain.operation import ErrorCode, OperationFailedError, OperationKind
from domain.optim_step import OptimStepResult
from domain.session import SessionSpec
from tests.chaos.plan import Operation
from tests.chaos.story import SessionRun
from workers.changes import call_seed
from workers.engine.adapters.state import AdapterState
from workers.engine.engine import Engine


class Expected(NamedTuple):
    """By the numbers of the operations that had an effect: the engine's result or the code of the error, for a
    checkpoint what it should hold; and the adapter at the beginning and after each step that was taken."""

    results: dict[int, Any]
    states: dict[int, AdapterState]


def run_undisturbed(engine: Engine, model: Path, run: SessionRun, origin: AdapterState | None) -> Expected:
    spec, name = run.spec, run.session_id
    engine.create_adapter(name, model, spec.lora, spec.seed, origin, publishes=spec.publishes).result()
    results: dict[int, Any] = {}
    states = {origin.step: origin} if origin else {}
    for number, operation in enumerate(run.accepted):
        if run.ends[number].had_no_effect:
            continue
        # Operation 0 of a session creates it, so that the first planned one has seq 1.
        results[number] = _run(engine, name, spec, operation, seq=number + 1)
        if isinstance(results[number], OptimStepResult):
            state = engine.copy_adapter(name).result()
            states[state.step] = state
    engine.drop_adapter(name).result()
    return Expected(results, states)


def _run(engine: Engine, name: str, spec: SessionSpec, operation: Operation, seq: int) -> Any | ErrorCode:
    request: Any = operation.request
    try:
        match operation.kind:
            case OperationKind.SAMPLE:
                prompts = engine.score_prompts(name, request).result() if request.prompt_logprobs else ()
                return replace(engine.sample(name, request).result(), prompts=prompts)
            case OperationKind.OPTIM_STEP:
                return engine.optim_step(name, request).result()
            case OperationKind.WEIGHTS_SYNC:
                return engine.weights_sync(name).result()
            case OperationKind.TRAINING_CHECKPOINT:
                return engine.copy_adapter(name).result().without_gradients()
            case OperationKind.INFERENCE_CHECKPOINT:
                return engine.export_adapter(name).result()
            case _:
                return engine.forward_backward(name, request, call_seed(spec.seed, seq)).result()
    except OperationFailedError as failed:
        return failed.error.code
