"""One readable log of many processes: every line with its time and the name of its process."""

import itertools
import re
import threading
import time
from typing import TextIO

COLOURS = (36, 33, 35, 32, 34)  # ANSI foregrounds that are legible on dark and on light
NAME_WIDTH = 8
# How a line begins that tells its own time: ours, and gunicorn's.
TIMED = re.compile(r"\[?\d{4}-\d\d-\d\d ")


class Log:
    """Lines of all processes, whole, in the order in which they came; coloured on a terminal."""

    def __init__(self, output: TextIO) -> None:
        self._output = output
        self._lock = threading.Lock()
        self._colours: dict[str, int] = {}
        self._next_colour = itertools.cycle(COLOURS)

    def write(self, name: str, line: str) -> None:
        told = "" if TIMED.match(line) else time.strftime("%Y-%m-%d %H:%M:%S ")
        with self._lock:
            self._output.write(self._coloured(name, f"{name:<{NAME_WIDTH}} | ") + told + line.rstrip("\r\n") + "\n")
            self._output.flush()

    def _coloured(self, name: str, text: str) -> str:
        if not self._output.isatty():
            return text
        if name not in self._colours:
            self._colours[name] = next(self._next_colour)
        return f"\033[{self._colours[name]}m{text}\033[0m"
