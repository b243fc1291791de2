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
    """Every method returns a future at once.

    Until the engine commits a call, `Future.cancel` abandons it: it changes nothing, and the engine drops it at its
    next step. A call that is committed cannot be cancelled and ends soon. An optim-step, a weights-sync and a drop are
    committed when they begin, all other calls when they have their result.

    A future fails with OperationFailedError where the operation failed, with EngineClosedError where it never began,
    and with whatever was raised where the fault is ours: in a FailedAfterCommitError if that was in the middle of a
    change, after which the adapter must be dropped. A failure is that of one call only.

    The caller keeps the order of a session: it submits a sample only when the session's weights are those that the
    sample is to use, and no other call of a session while its forward-backward runs.

    Raises:
        ValueError: an unknown or missing device, an unknown dtype, or kernels that were asked for and are missing.
    """

    def __init__(self, config: EngineConfig) -> None:
        choose_vector_math()
        use_threads(config.torch_threads)
        # Read here: in a new thread torch takes over what any other thread has set last.
        self._threads = torch.get_num_threads()
        self._core = EngineCore(config)
        self._loader = ModelLoader(config, self._threads, self._paused)
        self._inbox: SimpleQueue[Job | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)
        self._closed = self._is_exiting = False
        self._lock = threading.Lock()

    def start(self) -> None:
        self._thread.start()
        atexit.register(self._exit)

    def close(self) -> None:
        """Finishes the calls that have begun, fails the others, and ends the threads."""
        atexit.unregister(self._exit)
        with self._lock:
            self._closed = True
        self._inbox.put(None)
        self._thread.join()
        self._loader.close()

    def load_model(self, model_dir: Path) -> "Future[BaseModel]":
        """Loads one model at a time in a thread beside the engine's. A load whose future is cancelled goes on, for the
        next caller."""
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
        """Waits for the base model, as `load_model` does. The adapter begins with `state`, or else from its seed, and
        replaces one that the session has here. Where it `publishes`, samples use the weights of the last
        weights-sync."""
        loading = self._loader.load(model_dir)
        creation = Creation(loading, lora, seed, state, publishes)
        created = self._submit(partial(self._core.create_adapter, session_id=session_id, creation=creation))
        if not loading.done():
            # Submitted after the call itself, even if the model is loaded by now.
            loading.add_done_callback(lambda _: self._submit(self._core.create_pending))
        return created

    def free_bytes(self) -> int:
        """Free memory of the device."""
        return self._core.free_bytes()

    def total_bytes(self) -> int:
        """All memory of the device."""
        return self._core.total_bytes()

    def take_utilization(self) -> tuple[float, float]:
        """Since the last call: the mean fraction of the decode batch that was used, and of a training pass's tokens."""
        return self._core.decode_utilization.take(), self._core.training_utilization.take()

    def copy_adapter(self, session_id: str) -> "Future[AdapterState]":
        """A copy of the adapter as it is when the engine reaches the call."""
        return self._submit(partial(self._core.copy_adapter, session_id=session_id))

    def export_adapter(self, session_id: str) -> "Future[AdapterExport]":
        """The adapter's matrices by the names of their layers, as they are when the engine reaches the call."""
        return self._submit(partial(self._core.export_adapter, session_id=session_id))

    def drop_adapter(self, session_id: str) -> "Future[None]":
        """Frees the session's memory and fails its calls in flight; does nothing for a session that is not here."""
        return self._submit(partial(self._core.drop_adapter, session_id=session_id))

    def sample(self, session_id: str, request: SampleRequest) -> "Future[SampleResult]":
        return self._submit(partial(self._core.sample, session_id=session_id, request=request))

    def score_prompts(self, session_id: str, request: SampleRequest) -> "Future[tuple[ScoredPrompt, ...]]":
        """Logprobs of the request's prompts, by the weights that samples use."""
        return self._submit(partial(self._core.score_prompts, session_id=session_id, request=request))

    def weights_sync(self, session_id: str) -> "Future[WeightsSyncResult]":
        """Later samples use the weights as they are when the engine reaches the call."""
        return self._submit(partial(self._core.weights_sync, session_id=session_id))

    def forward_backward(
        self, session_id: str, request: ForwardBackwardRequest, seed: int
    ) -> "Future[ForwardBackwardResult]":
        """`seed` draws this call's dropout masks."""
        return self._submit(partial(self._core.forward_backward, session_id=session_id, request=request, seed=seed))

    def optim_step(self, session_id: str, request: OptimStepRequest) -> "Future[OptimStepResult]":
        return self._submit(partial(self._core.optim_step, session_id=session_id, request=request))

    def _exit(self) -> None:
        """At the end of a process that did not call `close`: waits for the running step, since a thread that is in
        torch while the interpreter shuts down makes the process abort."""
        self._is_exiting = True
        self.close()

    def _submit(self, begin: Callable[..., None]) -> "Future[Any]":
        future: Future[Any] = Future()
        with self._lock:
            if self._closed:
                future.set_exception(EngineClosedError(CLOSED))
            else:
                self._inbox.put((begin, future))
        future.add_done_callback(self._drop_if_cancelled)
        return future

    def _drop_if_cancelled(self, future: "Future[Any]") -> None:
        if future.cancelled():
            self._submit(self._core.drop_cancelled)

    @contextmanager
    def _paused(self) -> Iterator[None]:
        """Keeps the engine's thread idle. Raises EngineClosedError."""
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
        if self._is_exiting:
            return
        self._core.abandon_waiting(EngineClosedError(CLOSED))
        while self._core.is_busy:
            self._core.advance()

    def _take_jobs(self) -> bool:
        """Begins all submitted jobs, waiting for one if there is nothing else to do; False after `close`."""
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
