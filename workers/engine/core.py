"""What the engine's one thread owns: base models, adapters and the work on the device."""

import time
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, replace

import torch

from domain.forward_backward import ForwardBackwardRequest, ForwardBackwardResult
from domain.operation import OperationFailedError
from domain.optim_step import OptimStepRequest, OptimStepResult
from domain.sample import SampleRequest, SampleResult, ScoredPrompt
from domain.session import LoraConfig
from domain.weights_sync import WeightsSyncResult
from workers.engine.adapters.adapter import Adapter, Published
from workers.engine.adapters.export import AdapterExport
from workers.engine.adapters.state import AdapterState
from workers.engine.backends.trial import kernels_for
from workers.engine.commit import answer, commit, fail
from workers.engine.config import EngineConfig
from workers.engine.device.free_memory import free_bytes, give_back, map_large_blocks, total_bytes
from workers.engine.failures import as_failure, session_not_active
from workers.engine.kernels.kernel import choose
from workers.engine.loading.base_model import BaseModel
from workers.engine.sampling.decode_batch import DecodeBatch
from workers.engine.sampling.prompt_scoring import PromptScoring
from workers.engine.sampling.sequences import Sampling
from workers.engine.scheduler import FairScheduler
from workers.engine.training.forward_backward import ForwardBackwardCall
from workers.engine.training.optim_step import optim_step
from workers.engine.training.training_batch import TrainingBatch
from workers.engine.utilization import Utilization


@dataclass(frozen=True)
class ServedModel:
    """A base model, the batch of all sequences that decode on it, and the batch of all calls that train on it."""

    base: BaseModel
    decode_batch: DecodeBatch
    training_batch: TrainingBatch


@dataclass(frozen=True)
class CachedAdapter:
    """A session's adapter in this device's memory, and the base model it runs on."""

    adapter: Adapter
    model: ServedModel
    published: Published | None = None

    @property
    def sampled(self) -> Adapter | Published:
        """The weights that samples use: the current ones, unless the session publishes."""
        return self.published or self.adapter


@dataclass(frozen=True)
class Creation:
    """An adapter to be created, on a base model that may still be loading."""

    loading: "Future[BaseModel]"
    lora: LoraConfig
    seed: int
    state: AdapterState | None
    publishes: bool


InFlight = Sampling | ForwardBackwardCall | PromptScoring
"""A call that takes more than one step."""


class EngineCore:
    """A method named after an operation starts it and later sets its future; `advance` runs a piece of started work.

    Not thread-safe: only the engine's thread calls it.

    Raises:
        ValueError: as Engine.
    """

    def __init__(self, config: EngineConfig) -> None:
        self._config = config
        self._device, self._dtype = config.torch_device, config.torch_dtype
        map_large_blocks()
        if self._device.type == "cpu":
            choose(kernels_for(self._dtype) if config.kernels == "auto" else config.kernels)
        self._models: dict[BaseModel, ServedModel] = {}
        # Waiting for their base model, by session.
        self._pending: dict[str, tuple[Future[None], Creation]] = {}
        self._cached: dict[str, CachedAdapter] = {}
        self._scheduler = FairScheduler()
        self.decode_utilization = Utilization(config.max_batch_sequences)
        self.training_utilization = Utilization(config.micro_batch_tokens)

    @property
    def is_busy(self) -> bool:
        return bool(self._scheduler)

    def free_bytes(self) -> int:
        """Of the device; thread-safe."""
        return free_bytes(self._device)

    def total_bytes(self) -> int:
        """Of the device, used or free."""
        return total_bytes(self._device)

    def create_adapter(self, future: "Future[None]", session_id: str, creation: Creation) -> None:
        """Replaces the session's adapter, if it has one here. While the base model loads, the creation is pending."""
        self._evict(session_id)
        if creation.loading.done():
            self._create(future, session_id, creation)
        else:
            self._pending[session_id] = future, creation

    def create_pending(self, future: "Future[None]") -> None:
        """Creates the pending adapters whose base model has been loaded since, or has failed to load."""
        for session_id, (waiting, creation) in list(self._pending.items()):
            if creation.loading.done():
                del self._pending[session_id]
                try:
                    self._create(waiting, session_id, creation)
                except Exception as error:  # noqa: BLE001 - the boundary between one job and the loop that serves all
                    fail(waiting, as_failure(error))
        answer(future, None)

    def _create(self, future: "Future[None]", session_id: str, creation: Creation) -> None:
        if future.cancelled():
            return
        model, state = self._served(creation.loading.result()), creation.state
        adapter = Adapter(model.base.groups, creation.lora, creation.seed, self._device)
        if state is not None:
            state.restore(adapter)
        published = None
        if creation.publishes:
            published = state.published_for(adapter) if state else Published.of(adapter)
        if commit(future):
            self._cached[session_id] = CachedAdapter(adapter, model, published)
            future.set_result(None)

    def copy_adapter(self, future: "Future[AdapterState]", session_id: str) -> None:
        cached = self._cached_adapter(session_id)
        answer(future, AdapterState.of(cached.adapter, cached.published))

    def weights_sync(self, future: "Future[WeightsSyncResult]", session_id: str) -> None:
        cached = self._cached_adapter(session_id)
        if commit(future):
            self._cached[session_id] = replace(cached, published=Published.of(cached.adapter))
            future.set_result(WeightsSyncResult(cached.adapter.step))

    def export_adapter(self, future: "Future[AdapterExport]", session_id: str) -> None:
        cached = self._cached_adapter(session_id)
        answer(future, AdapterExport.of(cached.adapter, cached.model.base.adapted.targets))

    def drop_adapter(self, future: "Future[None]", session_id: str) -> None:
        if commit(future):
            self._evict(session_id)
            future.set_result(None)

    def sample(self, future: "Future[SampleResult]", session_id: str, request: SampleRequest) -> None:
        cached = self._cached_adapter(session_id)
        sampling = Sampling(session_id, request, cached.sampled, cached.model.base, future)
        cached.model.decode_batch.add(sampling)
        self._scheduler.add(cached.model.decode_batch)

    def score_prompts(
        self, future: "Future[tuple[ScoredPrompt, ...]]", session_id: str, request: SampleRequest
    ) -> None:
        cached = self._cached_adapter(session_id)
        self._scheduler.add(PromptScoring(session_id, request, cached.sampled, cached.model.base, future))

    def forward_backward(
        self, future: "Future[ForwardBackwardResult]", session_id: str, request: ForwardBackwardRequest, seed: int
    ) -> None:
        cached = self._cached_adapter(session_id)
        base = cached.model.base
        call = ForwardBackwardCall(session_id, request, cached.adapter, base, self._config, seed, future)
        cached.model.training_batch.add(call)
        self._scheduler.add(cached.model.training_batch)

    def optim_step(self, future: "Future[OptimStepResult]", session_id: str, request: OptimStepRequest) -> None:
        adapter = self._cached_adapter(session_id).adapter
        if not commit(future):
            return
        try:
            future.set_result(optim_step(adapter, request))
        except OperationFailedError as failed:
            # Such a failure is an outcome like any other: what it leaves of the adapter is defined.
            future.set_exception(failed)

    def advance(self) -> None:
        """Runs the next piece of work; a failure in it ends only that work."""
        work = self._scheduler.next()
        started = time.perf_counter()
        try:
            has_more = work.advance()
        except Exception as error:  # noqa: BLE001 - the boundary between one job and the loop that serves all
            work.fail(as_failure(error))
            has_more = False
        self._scheduler.charge(work, time.perf_counter() - started)
        if not has_more:
            self._scheduler.remove(work)

    def abandon_waiting(self, error: Exception) -> None:
        """Fails the calls that have been started but have not run yet."""
        self._abandon(lambda work: not work.has_begun, error)
        for waiting, _ in self._pending.values():
            fail(waiting, error)
        self._pending.clear()

    def drop_cancelled(self, future: "Future[None]") -> None:
        """Drops the work of calls whose future was cancelled."""
        self._abandon(lambda work: work.future.cancelled(), CancelledError())
        self._pending = {id: pending for id, pending in self._pending.items() if not pending[0].cancelled()}
        answer(future, None)

    def _served(self, base: BaseModel) -> ServedModel:
        if base not in self._models:
            most = self._config.micro_batch_tokens
            decode_batch = DecodeBatch(base, most, self._config.max_batch_sequences, self.decode_utilization)
            training_batch = TrainingBatch(base, most, self._config.merge_training, self.training_utilization)
            self._models[base] = ServedModel(base, decode_batch, training_batch)
        return self._models[base]

    def _cached_adapter(self, session_id: str) -> CachedAdapter:
        if session_id not in self._cached:
            raise session_not_active(f"Session {session_id} has no adapter on this worker.")
        return self._cached[session_id]

    def _evict(self, session_id: str) -> None:
        """Frees the adapter and fails the session's calls in flight."""
        error = session_not_active(f"Session {session_id} was taken off this worker.")
        if pending := self._pending.pop(session_id, None):
            fail(pending[0], error)
        cached = self._cached.pop(session_id, None)
        if cached is None:
            return
        self._abandon(lambda work: work.session_id == session_id, error)
        give_back()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    def _abandon(self, is_meant: Callable[[InFlight], bool], error: Exception) -> None:
        """Fails the calls for which `is_meant` is true, running and waiting."""
        for model in self._models.values():
            model.decode_batch.abandon(is_meant, error)
            model.training_batch.abandon(is_meant, error)
        for work in self._scheduler:
            if isinstance(work, PromptScoring) and is_meant(work):
                work.fail(error)
                self._scheduler.remove(work)
