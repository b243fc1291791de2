"""What the modules of store/ and workers/ find in place of time, threads, random ids and the engine.

Their code is run as it is. This process does nothing else from then on.
"""

import logging
import sys
import threading
import time
import uuid
from collections.abc import Callable
from concurrent import futures
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, TypeVar

from celery.app import trace

import store.objects
import store.scripts
from store.scripts import LUA
from store.store import Store
from tests.simulator import objects, threads
from tests.simulator.adapter import Adapter
from tests.simulator.api import CARD
from tests.simulator.engine import SimulatedEngine
from tests.simulator.faults import Target
from tests.simulator.schedule import running
from workers import heartbeat, runtime
from workers.background import in_background
from workers.deadline import Deadline, RestoreDeadline
from workers.engine.adapters.state import AdapterState

T = TypeVar("T")

THREADING = SimpleNamespace(
    Lock=threads.Lock, RLock=threads.Lock, Condition=threads.Condition, Event=threads.Event, Thread=threads.Thread
)
TIME = SimpleNamespace(monotonic=threads.monotonic, sleep=threads.sleep)
OBSTORE = SimpleNamespace(
    put=objects.put, get=objects.get, head=objects.head, delete=objects.delete, list=objects.list_pages
)
# Sooner than the product does, so that a short history has some of each.
SWEEP_SECONDS = 20.0


def install(open_store: Callable[[], Store], make_engine: Callable[[], SimulatedEngine]) -> None:
    """Done once. What is given is called for the process that runs just then."""
    logging.disable(logging.CRITICAL)
    found: list[tuple[Any, Any]] = [
        (time, TIME), (threading, THREADING), (uuid.uuid4, new_id), (futures.wait, threads.wait),
        (futures.ThreadPoolExecutor, threads.Executor), (in_background, begin), (Deadline, _by_our_clock(Deadline)),
        (RestoreDeadline, _by_our_clock(RestoreDeadline)), (AdapterState, Adapter),
    ]  # fmt: skip
    places = {id(real): simulated for real, simulated in found}
    for module in filter(_is_simulated, list(sys.modules.values())):
        for name, value in list(vars(module).items()):
            if id(value) in places:
                setattr(module, name, places[id(value)])
    stand_ins: dict[ModuleType, dict[str, Any]] = {
        trace: {"ExceptionInfo": ExceptionInfo},
        store.scripts: {"LUA": ListedFolder(LUA)},
        store.objects: {"obstore": OBSTORE},
        heartbeat: {"os": SimpleNamespace(getpid=lambda: 0, kill=end_process), "SWEEP_SECONDS": SWEEP_SECONDS},
        runtime: {
            "os": SimpleNamespace(getpid=lambda: 0, _exit=end_process),
            "socket": SimpleNamespace(gethostname=lambda: "host"),
            "secrets": SimpleNamespace(token_hex=lambda _: running().process.name),
            "open_store": lambda _: open_store(),
            "Engine": lambda _: make_engine(),
            "Catalog": lambda *_: SimulatedCatalog(),
            "model_folders": lambda _: [],
            "Hub": lambda *_: None,
        },
    }
    for module, names in stand_ins.items():
        for name, value in names.items():
            assert hasattr(module, name), f"{module.__name__} has no {name} any more"
            setattr(module, name, value)


class ExceptionInfo:
    """What Celery keeps of an exception, without a copy of the traceback, at which nobody looks."""

    def __init__(self, exc_info: Any = None, *, internal: bool = False) -> None:
        self.exc_info: Any = exc_info or sys.exc_info()
        self.type: Any = self.exc_info[0]
        self.exception: Any = self.exc_info[1]
        self.tb = None
        self.traceback, self.internal = "", internal


class ListedFolder:
    """A folder whose files stay what they are, listed once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._scripts = sorted(folder.glob("*.lua"))

    def glob(self, _: str) -> list[Path]:
        return self._scripts

    def __truediv__(self, name: str) -> Path:
        return self._folder / name


class SimulatedCatalog:
    """Where a worker has its catalog: one base model, which is there."""

    def __init__(self) -> None:
        self.unserved: dict[str, str] = {}

    def cards(self) -> tuple[Any, ...]:
        return (CARD,)

    def directory(self, _: str) -> Path:
        return Path()


def end_process(*_: object) -> None:
    schedule, raised = running(), sys.exc_info()[1]
    assert isinstance(schedule.process, Target)
    if schedule.process.is_dead:
        return
    if isinstance(raised, Exception):
        # A process that ends for a fault of its own.
        schedule.failures.append(f"{schedule.process.name} ended: {raised!r}")
    schedule.process.kill()


def new_id() -> str:
    """Of the coroutine that asks: the same in each run."""
    coroutine = running().coroutine
    if coroutine is None:
        return f"{running().process.name}-0"
    coroutine.ids += 1
    return f"{coroutine.name}-{coroutine.ids}"


def begin(action: Callable[[], T]) -> "threads.Promise[T]":
    """Runs it in a coroutine of its own."""
    return threads.Executor(thread_name_prefix=new_id()).submit(action)


def _by_our_clock(kind: type[Deadline]) -> Callable[..., Deadline]:
    return partial(kind, clock=threads.monotonic)


def _is_simulated(module: ModuleType) -> bool:
    name = getattr(module, "__name__", "")
    return name.startswith(("store.", "workers.")) and not name.startswith("workers.engine")
