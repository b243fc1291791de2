"""Runs the program of `reference/`, which checks the kernels of an instruction level against plain formulas."""

import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from workers.engine.kernels.build import build, compiler
from workers.engine.kernels.levels import Level
from workers.engine.kernels.library import SOURCES as KERNELS
from workers.engine.kernels.library import kernels_folder

SOURCES = Path(__file__).parent / "reference"
FLAGS = ("-std=c++20", "-O1", "-I", str(KERNELS))
# What compiles for a machine that is not this one, where a warning is an error, and what runs its programs.
CROSS_COMPILERS = {"aarch64": "aarch64-linux-gnu-g++ -Wall -Wextra -Werror"}
EMULATORS = {"aarch64": ("qemu-aarch64", "-L", "/usr/aarch64-linux-gnu")}


@dataclass(frozen=True)
class Checked:
    """A kernel in one dtype: whether it is right, and a digest of the bits of all that it gave."""

    kernel: str
    dtype: str
    is_right: bool
    digest: str


def missing_tool(level: Level) -> str | None:
    """What this machine would need to check a level; None where it has all."""
    cxx, emulator = _compiler_of(level), _emulator_of(level)
    if cxx is None or not shutil.which(shlex.split(cxx)[0]):
        return f"a C++ compiler for {level.machine}"
    return emulator[0] if emulator and not shutil.which(emulator[0]) else None


@cache
def checked(level: Level) -> tuple[Checked, ...]:
    """Builds what is not built yet, beside the kernels; raises where the program itself fails."""
    cxx = _compiler_of(level)
    assert cxx
    library = build(cxx, level, kernels_folder())
    command: list[str | Path] = [*_emulator_of(level), _program(cxx, level.machine), library]
    environment = {**os.environ, "OMP_NUM_THREADS": "2"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    lines = [line.split() for line in done.stdout.splitlines()]
    found = tuple(Checked(kernel, dtype, word == "right", digest) for kernel, dtype, word, _, digest in lines)
    # It ends with 1 where a kernel is wrong, which its lines say.
    if done.returncode != (0 if all(one.is_right for one in found) else 1):
        raise RuntimeError(f"ended with {done.returncode}: {done.stderr}")
    return found


def _compiler_of(level: Level) -> str | None:
    return compiler() if level.machine == platform.machine() else CROSS_COMPILERS.get(level.machine)


def _emulator_of(level: Level) -> tuple[str, ...]:
    return () if level.machine == platform.machine() else EMULATORS[level.machine]


def _program(cxx: str, machine: str) -> Path:
    """The program for a machine, compiled unless it is here already for these sources."""
    sources = [KERNELS / "interface.h", *sorted(SOURCES.iterdir())]
    parts = [cxx, *FLAGS, *(source.read_text() for source in sources)]
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
    target = kernels_folder() / f"reference-{machine}-{digest}"
    if not target.exists():
        with tempfile.TemporaryDirectory(dir=kernels_folder()) as aside:
            _compile(cxx, [source for source in sources if source.suffix == ".cpp"], Path(aside) / target.name)
            (Path(aside) / target.name).replace(target)
    return target


def _compile(cxx: str, sources: list[Path], target: Path) -> None:
    objects = [target.with_name(f"{source.stem}.o") for source in sources]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda source, made: _run(cxx, *FLAGS, "-c", source, "-o", made), sources, objects))
    _run(cxx, *objects, "-ldl", "-o", target)


def _run(cxx: str, *arguments: str | Path) -> None:
    subprocess.run([*shlex.split(cxx), *map(str, arguments)], check=True)
