"""What the product's modules find in place of `threading`, `time` and `concurrent.futures`, by the schedule's time."""

from collections.abc import Callable, Collection
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeVar

from tests.simulator.schedule import Coroutine, running

T = TypeVar("T")


def monotonic() -> float:
    return running().now


def sleep(seconds: float) -> None:
    running().pause(seconds)


class Lock:
    def __init__(self) -> None:
        self._is_held = False
        self._waiters: list[Coroutine] = []

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        schedule = running()
        until = schedule.now + timeout
        while self._is_held and blocking and (timeout < 0 or schedule.now < until):
            schedule.wait(self._waiters, None if timeout < 0 else until - schedule.now)
        if self._is_held:
            return False
        self._is_held = True
        return True

    def release(self) -> None:
        assert self._is_held
        self._is_held = False
        running().wake(self._waiters)

    def locked(self) -> bool:
        return self._is_held

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class Condition:
    """Nobody pauses inside it but in `wait_for`, so that it needs no lock."""

    def __init__(self) -> None:
        self._waiters: list[Coroutine] = []

    def wait_for(self, predicate: Callable[[], bool]) -> None:
        while not predicate():
            running().wait(self._waiters)

    def notify_all(self) -> None:
        running().wake(self._waiters)

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        return None


class Event:
    def __init__(self) -> None:
        self._is_set = False
        self._waiters: list[Coroutine] = []

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        self._is_set = True
        running().wake(self._waiters)

    def clear(self) -> None:
        self._is_set = False

    def wait(self, timeout: float | None = None) -> bool:
        if not self._is_set:
            running().wait(self._waiters, timeout)
        return self._is_set


class Thread:
    def __init__(self, target: Callable[..., object], name: str = "", args: tuple[Any, ...] = (), **_: object) -> None:
        self._target, self._name, self._args = target, name, args
        self._ended = Event()

    def start(self) -> None:
        schedule = running()
        schedule.spawn(f"{schedule.process.name}.{self._name}", self._run)

    def join(self, timeout: float | None = None) -> None:
        self._ended.wait(timeout)

    def is_alive(self) -> bool:
        return not self._ended.is_set()

    def _run(self) -> None:
        self._target(*self._args)
        self._ended.set()


class Promise(Future[T]):
    """A future that is waited for by the schedule."""

    def result(self, timeout: float | None = None) -> T:
        wait([self], timeout)
        return super().result(0)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        wait([self], timeout)
        return super().exception(0)


def wait(futures: Collection["Future[Any]"], timeout: float | None = None) -> None:
    """Until all are done."""
    for future in futures:
        if not future.done():
            ended = Event()
            future.add_done_callback(partial(_set, ended))
            ended.wait(timeout)


def _set(event: Event, _: object) -> None:
    event.set()


class Executor:
    """In place of a pool of one thread."""

    def __init__(self, *_: object, thread_name_prefix: str = "") -> None:
        self._name = f"{running().process.name}.{thread_name_prefix}"
        self._is_free = Lock()
        self._submitted = 0

    def submit(self, action: Callable[[], T]) -> "Promise[T]":
        promise: Promise[T] = Promise()
        self._submitted += 1
        running().spawn(f"{self._name}{self._submitted}", lambda: self._run(action, promise))
        return promise

    def shutdown(self) -> None:
        with self._is_free:
            pass

    def _run(self, action: Callable[[], T], promise: "Promise[T]") -> None:
        with self._is_free:
            try:
                promise.set_result(action())
            except Exception as error:  # noqa: BLE001 - raised where the result is asked for
                promise.set_exception(error)
