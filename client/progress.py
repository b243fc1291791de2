"""Bars on the terminal for whoever waits. Nothing else of the client needs tqdm."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

import msgspec
from tqdm import tqdm

from client.operation import Operation

T = TypeVar("T", bound=msgspec.Struct)


def results(operations: Sequence[Operation[T]], *, progress: bool = False, title: str = "results") -> list[T]:
    """What each answers, in their order. Raises as `Operation.result` for the first that failed."""
    with tqdm(total=len(operations), desc=title, disable=not progress) as bar:
        found = []
        for operation in operations:
            found.append(operation.result())
            bar.update()
    return found


class Steps:
    """The numbers 1 to `count`, one after the other."""

    def __init__(self, count: int, *, progress: bool = True, title: str = "steps") -> None:
        self._count = count
        self._bar = tqdm(total=count, desc=title, disable=not progress)

    def __iter__(self) -> Iterator[int]:
        with self._bar:
            for step in range(1, self._count + 1):
                yield step
                self._bar.update()

    def show(self, **numbers: float) -> None:
        """Beside the bar, until others are shown."""
        self._bar.set_postfix({name: f"{number:.3f}" for name, number in numbers.items()})
