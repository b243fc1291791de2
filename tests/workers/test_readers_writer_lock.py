"""Who runs beside whom in a worker."""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from workers.readers_writer_lock import ReadersWriterLock


class Guest:
    """A thread that takes a turn and stays until it is told to leave."""

    def __init__(self, take: Callable[[], AbstractContextManager[None]]) -> None:
        self.entered, self._may_leave = threading.Event(), threading.Event()
        self._take = take
        self._thread = threading.Thread(target=self._stay, daemon=True)
        self._thread.start()

    def _stay(self) -> None:
        with self._take():
            self.entered.set()
            self._may_leave.wait()

    def waits(self) -> bool:
        return not self.entered.wait(0.1)

    def leave(self) -> None:
        assert self.entered.wait(10)
        self._may_leave.set()
        self._thread.join()


def test_a_suspect_waits_for_those_that_run_and_all_others_wait_for_it() -> None:
    lock = ReadersWriterLock()
    first, second = Guest(lock.shared), Guest(lock.shared)
    assert first.entered.wait(10) and second.entered.wait(10)
    suspect = Guest(lock.exclusive)
    assert suspect.waits()
    late = Guest(lock.shared)
    first.leave()
    assert suspect.waits() and late.waits()
    second.leave()
    assert suspect.entered.wait(10) and late.waits()
    suspect.leave()
    late.leave()


def test_suspects_run_one_after_the_other_before_anyone_else() -> None:
    lock = ReadersWriterLock()
    first = Guest(lock.exclusive)
    assert first.entered.wait(10)
    second, late = Guest(lock.exclusive), Guest(lock.shared)
    assert second.waits() and late.waits()
    first.leave()
    assert second.entered.wait(10) and late.waits()
    second.leave()
    late.leave()


def test_a_holder_that_raises_lets_go() -> None:
    lock = ReadersWriterLock()
    for take in (lock.shared, lock.exclusive, lock.shared):
        with pytest.raises(ZeroDivisionError), take():
            raise ZeroDivisionError
