"""The engine as the worker calls it: from any thread, each call run by the one thread that owns the device."""

import atexit
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import torch

from domain.forward_backward import ForwardBackwardRequest, ForwardBackwardResult
from domain.optim_step import OptimStepRequest, OptimStepResult
from domain.sample import SampleRequest, SampleResult, ScoredPrompt
from domain.session import LoraConfig
from domain.weights_sync import WeightsSyncResult
from workers.engine.adapters.export import AdapterExport
from workers.engine.adapters.state import AdapterState
from workers.engine.commit import commit, fail
from workers.engine.config import EngineConfig
from workers.engine.core import Creation, EngineCore
from workers.engine.device.threads import choose_vector_math, use_threads
from workers.engine.failures import EngineClosedError, as_failure
from workers.engine.loading.base_model import BaseModel
from workers.engine.loading.model_loader import ModelLoader

CLOSED = "the engine was closed before this began"

Job = tuple[Callable[[Future[Any]], None], Future[Any]]


class Engine:
    """Every method answers at once with a future.

    Until the engine commits a call, `Future.cancel` gives it up: it changes nothing, and the engine is free of it at
    its next step. What is committed cannot be cancelled and ends soon. A step, a weights-sync and a drop are committed
    as they begin, all else when it has its result.

    A future fails with OperationFailedError when the operation did, with EngineClosedError when it never began, and
    with whatever was raised when the fault is ours: in a FailedAfterCommitError where that was in the middle of a
    change, after which the adapter is to be dropped. No failure reaches another job.

    The caller keeps a session's order: it hands in a sample only when the session's weights are those meant for it,
    and nothing else of a session while its forward-backward runs.

    Raises:
        ValueError: a device or dtype that is not known or not here, or kernels that cannot be had.
    """

    def __init__(self, config: EngineConfig) -> None:
        choose_vector_math()
        use_threads(config.torch_threads)
        # As it was chosen here: for the threads of the engine torch would choose by what another engine has set.
        self._threads = torch.get_num_threads()
        self._core = EngineCore(config)
        self._loader = ModelLoader(config, self._threads, self._paused)
        self._inbox: SimpleQueue[Job | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)
        self._closed = self._leaves = False
        self._lock = threading.Lock()

    def start(self) -> None:
        self._thread.start()
        atexit.register(self._leave)

    def close(self) -> None:
        """Finishes what has begun, fails what has not, and ends the threads."""
        atexit.unregister(self._leave)
        with self._lock:
            self._closed = True
        self._inbox.put(None)
        self._thread.join()
        self._loader.close()

    def load_model(self, model_dir: Path) -> "Future[BaseModel]":
        """Beside the engine's work, one model after the other. A load that nobody waits for any more goes on, for
        whoever asks next."""
        return self._loader.load(model_dir)

    def create_adapter(
        self,
        session_id: str,
        model_dir: Path,
        lora: LoraConfig,
        seed: int,
        state: AdapterState | None = None,
        *,
        publishes: bool = False,
    ) -> "Future[None]":
        """Waits for the base model, as `load_model`. The adapter begins with `state`, or else from its seed; a session
        that is here already begins again. Where it `publishes`, samples use the weights of the last weights-sync."""
        loading = self._loader.load(model_dir)
        creation = Creation(loading, lora, seed, state, publishes)
        created = self._submit(partial(self._core.create_adapter, session_id=session_id, creation=creation))
        if not loading.done():
            # Behind the call itself, however soon it is.
            loading.add_done_callback(lambda _: self._submit(self._core.create_pending))
        return created

    def free_bytes(self) -> int:
        """Memory that the device has left."""
        return self._core.free_bytes()

    def total_bytes(self) -> int:
        """Memory that the device has, taken or free."""
        return self._core.total_bytes()

    def take_utilization(self) -> tuple[float, float]:
        """Since the last call: the mean fraction of the decode batch that was used, and of a training pass's tokens."""
        return self._core.decode_utilization.take(), self._core.training_utilization.take()

    def copy_adapter(self, session_id: str) -> "Future[AdapterState]":
        """The adapter as it is when the call's turn comes."""
        return self._submit(partial(self._core.copy_adapter, session_id=session_id))

    def export_adapter(self, session_id: str) -> "Future[AdapterExport]":
        """The adapter's matrices by the names of their layers, as they are when the call's turn comes."""
        return self._submit(partial(self._core.export_adapter, session_id=session_id))

    def drop_adapter(self, session_id: str) -> "Future[None]":
        """Frees the session's memory and fails what it has in flight; no matter if there is no such session."""
        return self._submit(partial(self._core.drop_adapter, session_id=session_id))

    def sample(self, session_id: str, request: SampleRequest) -> "Future[SampleResult]":
        return self._submit(partial(self._core.sample, session_id=session_id, request=request))

    def score_prompts(self, session_id: str, request: SampleRequest) -> "Future[tuple[ScoredPrompt, ...]]":
        """What the weights that samples use think of the request's prompts."""
        return self._submit(partial(self._core.score_prompts, session_id=session_id, request=request))

    def weights_sync(self, session_id: str) -> "Future[WeightsSyncResult]":
        """From now on samples use the weights as they are when the call's turn comes."""
        return self._submit(partial(self._core.weights_sync, session_id=session_id))

    def forward_backward(
        self, session_id: str, request: ForwardBackwardRequest, seed: int
    ) -> "Future[ForwardBackwardResult]":
        """`seed` draws this call's dropout masks."""
        return self._submit(partial(self._core.forward_backward, session_id=session_id, request=request, seed=seed))

    def optim_step(self, session_id: str, request: OptimStepRequest) -> "Future[OptimStepResult]":
        return self._submit(partial(self._core.optim_step, session_id=session_id, request=request))

    def _leave(self) -> None:
        """The process ends without `close`: after the step that runs just now, since a thread that is still in torch
        when the interpreter goes makes the process abort."""
        self._leaves = True
        self.close()

    def _submit(self, begin: Callable[..., None]) -> "Future[Any]":
        future: Future[Any] = Future()
        with self._lock:
            if self._closed:
                future.set_exception(EngineClosedError(CLOSED))
            else:
                self._inbox.put((begin, future))
        future.add_done_callback(self._see_to_cancelled)
        return future

    def _see_to_cancelled(self, future: "Future[Any]") -> None:
        if future.cancelled():
            self._submit(self._core.drop_cancelled)

    @contextmanager
    def _paused(self) -> Iterator[None]:
        """While the engine's thread does nothing. Raises EngineClosedError."""
        is_paused, is_over = threading.Event(), threading.Event()

        def pause(future: "Future[None]") -> None:
            assert commit(future), "nobody else has it"
            is_paused.set()
            is_over.wait()
            future.set_result(None)

        paused = self._submit(pause)
        paused.add_done_callback(lambda _: is_paused.set())
        is_paused.wait()
        try:
            if paused.done():
                paused.result()
            yield
        finally:
            is_over.set()

    def _run(self) -> None:
        use_threads(self._threads)
        while self._take_jobs():
            if self._core.is_busy:
                self._core.advance()
        if self._leaves:
            return
        self._core.abandon_waiting(EngineClosedError(CLOSED))
        while self._core.is_busy:
            self._core.advance()

    def _take_jobs(self) -> bool:
        """Begins all jobs that have come, waiting for one when there is nothing else to do; False at the end."""
        wait = not self._core.is_busy
        while True:
            try:
                job = self._inbox.get(block=wait)
            except Empty:
                return True
            if job is None:
                return False
            self._begin(*job)
            wait = False

    def _begin(self, begin: Callable[[Future[Any]], None], future: "Future[Any]") -> None:
        if future.cancelled():
            return
        try:
            if self._closed:
                raise EngineClosedError(CLOSED)
            begin(future)
        except Exception as error:  # noqa: BLE001 - the boundary between one job and the loop that serves all
            fail(future, as_failure(error))
