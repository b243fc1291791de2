"""Compiles the kernels, once for each processor and version of theirs, and loads them."""

import ctypes
import hashlib
import logging
import os
import shlex
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

SOURCES = Path(__file__).parent
# Not clang++: it brings another OpenMP than torch's, with threads of its own that no setting of torch's reaches.
COMPILER = "g++"
# -ffp-contract says what becomes of a * b + c: one rounding, in the sampler as in the trainer.
FLAGS = ("-std=c++17", "-O3", "-march=native", "-ffp-contract=fast", "-fno-math-errno", "-fopenmp", "-fPIC")

# At the end of a file that is whole: to load one that was cut short kills the process.
END = b"celerity"
ADVICE = "let XDG_CACHE_HOME name a folder that can be written and run from, or choose the kernels 'torch'"

logger = logging.getLogger(__name__)


def compiler() -> str | None:
    """The C++ compiler of this machine: CXX, with arguments if it has any, or g++; None where it is not found."""
    command = os.environ.get("CXX", "").strip() or COMPILER
    return command if shutil.which(shlex.split(command)[0]) else None


def cache_folder() -> Path:
    """This user's. A relative XDG_CACHE_HOME does not count, as its specification has it.

    Raises:
        ValueError: there is none.
    """
    named = Path(os.environ.get("XDG_CACHE_HOME", ""))
    try:
        return (named if named.is_absolute() else Path.home() / ".cache") / "celerity"
    except RuntimeError as error:
        raise ValueError(f"this user has no home to keep the kernels in: {ADVICE}") from error


@cache
def library(folder: Path, cxx: str) -> ctypes.CDLL:
    """The kernels, compiled with `cxx` unless `folder` has them.

    Raises:
        ValueError: they do not compile, or `folder` cannot keep them.
    """
    target = folder / f"kernels-{_fingerprint(cxx)}.so"
    try:
        if not _is_whole(target):
            _make(cxx, target)
        return ctypes.CDLL(str(target))
    except OSError as error:
        raise ValueError(f"the kernels cannot be kept in {folder} ({error}): {ADVICE}") from error


def _is_whole(target: Path) -> bool:
    return target.exists() and target.read_bytes().endswith(END)


def _make(cxx: str, target: Path) -> None:
    """Aside, and moved when complete: several workers may start at once."""
    target.parent.mkdir(parents=True, exist_ok=True)
    logger.info("compiling the kernels into %s", target)
    with tempfile.TemporaryDirectory(dir=target.parent) as aside:
        made = Path(aside) / target.name
        _build(cxx, made)
        with made.open("ab") as file:
            file.write(END)
        made.replace(target)


def _build(cxx: str, target: Path) -> None:
    """The sources on all cores, side by side, then one library of them."""
    sources = sorted(SOURCES.glob("*.cpp"))
    objects = [target.with_name(f"{source.stem}.o") for source in sources]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda source, made: _run(cxx, "-c", source, "-o", made), sources, objects))
    _run(cxx, "-shared", *objects, "-o", target)


def _run(cxx: str, *arguments: str | Path) -> None:
    command = [*shlex.split(cxx), *FLAGS, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ValueError(f"the kernels do not compile with {cxx}: {done.stderr[-2000:]}")


def _fingerprint(cxx: str) -> str:
    """Of all that decides what comes out: sources, flags, the compiler, and the processor that `native` means."""
    command = [*shlex.split(cxx), "-march=native", "-E", "-v", "-x", "c++", os.devnull]
    native = subprocess.run(command, capture_output=True, text=True, check=False)
    parts = [source.read_bytes() for source in sorted([*SOURCES.glob("*.cpp"), *SOURCES.glob("*.h")])]
    parts += [" ".join(FLAGS).encode(), native.stderr.encode()]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]
