"""Builds the kernels: `python -m workers.engine.kernels.build [LEVEL ...]`.

Without a level those that this processor can run; `all` are those that the compiler can make, for an image that will
run elsewhere. What is built already is left as it is.
"""

import os
import platform
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from workers.engine.kernels.levels import LEVELS, Level, level_of, usable
from workers.engine.kernels.library import ADVICE, END, FLAGS, SOURCES, is_whole, kernels_folder, library_file

# Not clang++: it brings another OpenMP than torch's, with threads of its own that no setting of torch's reaches.
COMPILER = "g++"
ALL = "all"
WITHOUT = (
    "no C++ compiler: workers on CPUs will use torch's operations, which take about twice as long;"
    " install g++, or name a compiler in CXX, and run this again"
)


def compiler() -> str | None:
    """The C++ compiler of this machine: CXX, with arguments if it has any, or g++; None where it is not found."""
    command = os.environ.get("CXX", "").strip() or COMPILER
    return command if shutil.which(shlex.split(command)[0]) else None


def build(cxx: str, level: Level, folder: Path) -> Path:
    """The library of a level, compiled with `cxx` unless `folder` has it.

    Raises:
        ValueError: it does not compile, or `folder` cannot keep it.
    """
    target = library_file(folder, level)
    try:
        if not is_whole(target):
            _make(cxx, level, target)
    except OSError as error:
        raise ValueError(f"the kernels cannot be kept in {folder} ({error}): {ADVICE}") from error
    return target


def _make(cxx: str, level: Level, target: Path) -> None:
    """Aside, and moved when complete: several may build at once."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as aside:
        made = Path(aside) / target.name
        _compile(cxx, level, made)
        with made.open("ab") as file:
            file.write(END)
        made.replace(target)


def _compile(cxx: str, level: Level, target: Path) -> None:
    """The sources on all cores, side by side, then one library of them."""
    sources = sorted(SOURCES.glob("*.cpp"))
    objects = [target.with_name(f"{source.stem}.o") for source in sources]
    flags = (*FLAGS, *level.flags)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda source, made: _run(cxx, *flags, "-c", source, "-o", made), sources, objects))
    _run(cxx, *flags, "-shared", *objects, "-o", target)


def _run(cxx: str, *arguments: str | Path) -> None:
    done = subprocess.run([*shlex.split(cxx), *map(str, arguments)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise ValueError(f"the kernels do not compile with {cxx}: {done.stderr[-2000:]}")


def _levels_of(cxx: str, names: Sequence[str]) -> tuple[Level, ...]:
    if list(names) == [ALL]:
        return tuple(level for level in LEVELS if level.machine == _machine_of(cxx))
    return tuple(map(level_of, names)) or usable()


def _machine_of(cxx: str) -> str:
    """What the compiler compiles for, which may be another machine than this one."""
    done = subprocess.run([*shlex.split(cxx), "-dumpmachine"], capture_output=True, text=True, check=False)
    return done.stdout.partition("-")[0] or platform.machine()


def main(names: Sequence[str]) -> None:
    cxx = compiler()
    if cxx is None:
        return print(WITHOUT)
    folder = kernels_folder()
    for level in _levels_of(cxx, names):
        if not is_whole(library_file(folder, level)):
            print(f"building the kernels of level {level.name}, about half a minute", flush=True)
            started = time.monotonic()
            build(cxx, level, folder)
            print(f"built in {time.monotonic() - started:.0f} s: {library_file(folder, level)}")
    return None


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except ValueError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
