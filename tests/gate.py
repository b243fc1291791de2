"""Holds the code under test at a place of one's choice."""

import threading
from typing import Any

import pytest


class Gate:
    """Holds whoever calls `place.name`, from the `at`-th call from now on, until it is open."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, place: object, name: str, at: int = 1) -> None:
        self._reached, self._opened = threading.Event(), threading.Event()
        self.left, run = at, getattr(place, name)

        def held(*args: Any, **kwargs: Any) -> Any:
            self.left -= 1
            if self.left <= 0:
                self._reached.set()
                self._opened.wait()
            return run(*args, **kwargs)

        monkeypatch.setattr(place, name, held)

    def wait(self) -> None:
        """Returns when somebody is held."""
        assert self._reached.wait(60)

    def open(self) -> None:
        self._opened.set()
