"""Bars for a loop, on a terminal or in a notebook."""

import sys
from collections.abc import Iterator

from tqdm.auto import tqdm

# Work of several kinds is counted together, so that its number says little.
SHARE = "{desc}{percentage:3.0f}%|{bar}| {elapsed}<{remaining}{postfix}"


class Bar:
    """Of work whose amount is learnt on the way."""

    def __init__(self, title: str = "starting") -> None:
        self._bar = tqdm(total=0, desc=title, bar_format=SHARE, dynamic_ncols=True)

    def __enter__(self) -> "Bar":
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.close()

    def extend(self, amount: int) -> None:
        self._bar.total += amount

    def say(self, phase: str) -> None:
        """What is under way, at once."""
        self._bar.set_description(phase)

    def moved(self, amount: int) -> None:
        self._bar.update(amount)

    def show(self, **numbers: float) -> None:
        """As `Steps.show`."""
        _show(self._bar, numbers)

    def print(self, line: str) -> None:
        """Above the bar, on stderr as it is."""
        self._bar.write(line, file=sys.stderr)


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
        _show(self._bar, numbers)


def _show(bar: tqdm, numbers: dict[str, float]) -> None:
    bar.set_postfix({name: f"{number:.3f}" for name, number in numbers.items()})
