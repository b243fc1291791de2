"""Loads base models in a thread beside the engine's, so that sessions on other models go on meanwhile."""

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

from domain.operation import ErrorCode, OperationFailedError
from workers.engine.commit import answer, fail
from workers.engine.config import EngineConfig
from workers.engine.device.free_memory import give_back
from workers.engine.device.threads import use_half_of_the_threads, use_threads
from workers.engine.failures import EngineClosedError, as_failure, in_a_line, is_of_the_machine, model_refused
from workers.engine.loading.base_model import BaseModel
from workers.engine.loading.default_dtype import pausing

log = logging.getLogger(__name__)

CLOSED = "the engine was closed before its base model was loaded"


class ModelLoader:
    """Loads one model at a time, with half of the engine's number of threads. Loaded models stay in memory."""

    def __init__(self, config: EngineConfig, threads: int, paused: Callable[[], AbstractContextManager[Any]]) -> None:
        """`threads` is the engine's number; `paused` is a context in which its thread is paused."""
        self._config = config
        self._executor = ThreadPoolExecutor(1, "model-loader", partial(_begin_thread, threads, paused))
        self._loads: dict[Path, Future[BaseModel]] = {}
        self._lock = threading.Lock()
        self._is_closed = False

    def load(self, directory: Path) -> "Future[BaseModel]":
        """A future of the caller's own: if it is cancelled the model is loaded all the same, for the next caller. A
        load that failed is tried again.

        Fails with OperationFailedError, EngineClosedError, or with a fault of the machine that may be temporary.
        """
        own: Future[BaseModel] = Future()
        with self._lock:
            if self._is_closed:
                own.set_exception(EngineClosedError(CLOSED))
                return own
            shared = self._loads.get(directory)
            if shared is None or (shared.done() and shared.exception()):
                shared = self._loads[directory] = self._executor.submit(self._load, directory)
        shared.add_done_callback(partial(_hand_on, own))
        return own

    def close(self) -> None:
        """Waits for the load in progress, which ends at its next step; cancels the others."""
        with self._lock:
            self._is_closed = True
        self._executor.shutdown(cancel_futures=True)

    def _load(self, directory: Path) -> BaseModel:
        ends = time.monotonic() + self._config.model_load_timeout
        try:
            return BaseModel(directory, self._config.torch_device, self._config.torch_dtype, partial(self._check, ends))
        except (OperationFailedError, EngineClosedError):
            raise
        except ValueError as error:
            raise model_refused(str(error)) from error
        except Exception as error:
            if is_of_the_machine(error):
                raise
            log.exception("the model in %s cannot be run", directory)
            raise model_refused(f"transformers cannot run it ({in_a_line(error)})") from error
        finally:
            give_back()

    def _check(self, ends: float) -> None:
        """Raises once the load is to end."""
        if self._is_closed:
            raise EngineClosedError(CLOSED)
        if time.monotonic() > ends:
            limit = f"CELERITY_MODEL_LOAD_TIMEOUT, {self._config.model_load_timeout:g} s"
            message = f"The base model took longer to load than it may: {limit}."
            raise OperationFailedError(ErrorCode.TIMEOUT, message)


def _begin_thread(threads: int, paused: Callable[[], AbstractContextManager[Any]]) -> None:
    use_threads(threads)
    use_half_of_the_threads()
    pausing.set(paused)


def _hand_on(own: "Future[BaseModel]", shared: "Future[BaseModel]") -> None:
    if shared.cancelled():
        fail(own, EngineClosedError(CLOSED))
    elif error := shared.exception():
        # A BaseException that is no Exception is a panic in the Rust of a library.
        fail(own, as_failure(error) if isinstance(error, Exception) else RuntimeError(in_a_line(error)))
    else:
        answer(own, shared.result())
