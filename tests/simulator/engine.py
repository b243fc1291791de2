"""An engine that adds integers, with the methods of the real one: calls in turn, answered by futures."""

from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from domain.forward_backward import ForwardBackwardRequest, ForwardBackwardResult
from domain.operation import ErrorCode, OperationFailedError
from domain.optim_step import OptimStepRequest, OptimStepResult
from domain.sample import SampleRequest, SampleResult
from domain.session import LoraConfig
from domain.weights_sync import WeightsSyncResult
from tests.simulator.adapter import Adapter
from tests.simulator.faults import Fault, Faults
from tests.simulator.schedule import Coroutine, running
from tests.simulator.threads import Promise
from workers.engine.commit import commit, fail

Work = Callable[[], Any]
# Longer than any operation may run.
STUCK_SECONDS = 60.0


class SimulatedEngine:
    """What commits as it begins, and what commits with its result, are as in workers/engine/engine.py."""

    def __init__(self, faults: Faults, pace: float) -> None:
        """`pace` is how many times as long as a call of the store each of its own takes."""
        self._faults, self._pace = faults, pace
        self._adapters: dict[str, Adapter] = {}
        self._jobs: deque[tuple[Work, Promise[Any], bool]] = deque()
        self._waiters: list[Coroutine] = []

    def start(self) -> None:
        schedule = running()
        schedule.spawn(f"{schedule.process.name}.engine", self._run)

    def close(self) -> None:
        """The process ends with it."""

    def free_bytes(self) -> int:
        return 1 << 40

    def total_bytes(self) -> int:
        return 1 << 40

    def take_utilization(self) -> tuple[float, float]:
        return 0.0, 0.0

    def load_model(self, _: Path) -> Promise[None]:
        """Beside the calls, by the real one too; there is nothing to be loaded."""
        loaded: Promise[None] = Promise()
        loaded.set_result(None)
        return loaded

    def create_adapter(
        self, session_id: str, _: Path, __: LoraConfig, seed: int, state: Adapter | None, *, publishes: bool
    ) -> Promise[None]:
        def create() -> None:
            adapter = state.copy() if state else Adapter(seed)
            if publishes and adapter.published < 0:
                adapter.published = adapter.weights
            self._adapters[session_id] = adapter

        return self._submit(create)

    def drop_adapter(self, session_id: str) -> Promise[None]:
        def drop() -> None:
            self._adapters.pop(session_id, None)

        return self._submit(drop, commits_first=True)

    def copy_adapter(self, session_id: str) -> Promise[Adapter]:
        return self._submit(lambda: self._adapter(session_id).copy())

    def sample(self, session_id: str, request: SampleRequest) -> Promise[SampleResult]:
        return self._submit(lambda: SampleResult((), step=self._adapter(session_id).sample(request.seed)))

    def weights_sync(self, session_id: str) -> Promise[WeightsSyncResult]:
        return self._submit(lambda: WeightsSyncResult(self._adapter(session_id).weights_sync()), commits_first=True)

    def forward_backward(
        self, session_id: str, request: ForwardBackwardRequest, _: int
    ) -> Promise[ForwardBackwardResult]:
        assert request.horizon is not None
        number = request.horizon

        def add() -> ForwardBackwardResult:
            return ForwardBackwardResult(loss=self._adapter(session_id).forward_backward(number), metrics={})

        return self._submit(add)

    def optim_step(self, session_id: str, request: OptimStepRequest) -> Promise[OptimStepResult]:
        def step() -> OptimStepResult:
            adapter = self._adapter(session_id)
            weights = adapter.optim_step(int(request.learning_rate))
            return OptimStepResult(step=adapter.step, metrics={"weights": weights})

        return self._submit(step, commits_first=True)

    def _adapter(self, session_id: str) -> Adapter:
        if session_id not in self._adapters:
            raise OperationFailedError(ErrorCode.SESSION_NOT_ACTIVE, "it has no adapter on this worker")
        return self._adapters[session_id]

    def _submit(self, work: Work, *, commits_first: bool = False) -> Promise[Any]:
        promise: Promise[Any] = Promise()
        self._jobs.append((work, promise, commits_first))
        running().wake(self._waiters)
        return promise

    def _run(self) -> None:
        schedule, coroutine = running(), running().coroutine
        assert coroutine
        while True:
            while not self._jobs:
                schedule.wait(self._waiters)
            work, promise, commits_first = self._jobs.popleft()
            is_stuck = self._faults.happens(coroutine, Fault.STUCK_JOB)
            if commits_first and not commit(promise):
                continue
            schedule.pause(STUCK_SECONDS if is_stuck else self._pace * coroutine.latency())
            self._end(work, promise, is_committed=commits_first)

    def _end(self, work: Work, promise: Promise[Any], *, is_committed: bool) -> None:
        if not is_committed and promise.cancelled():
            return
        try:
            result = work()
        except OperationFailedError as failed:
            if is_committed:
                # What a step does when it fails so is as certain as a result.
                promise.set_exception(failed)
            else:
                fail(promise, failed)
            return
        if is_committed or commit(promise):
            promise.set_result(result)
