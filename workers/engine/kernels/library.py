"""Compiles the kernels, once for each processor and version of theirs, and loads them."""

import ctypes
import hashlib
import logging
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

SOURCES = Path(__file__).parent
COMPILERS = ("g++", "clang++")
# -ffp-contract is what both compilers do with a * b + c: one rounding, in the sampler as in the trainer.
FLAGS = ("-std=c++17", "-O3", "-march=native", "-ffp-contract=fast", "-fno-math-errno", "-fopenmp", "-shared", "-fPIC")

logger = logging.getLogger(__name__)


def compiler() -> str | None:
    """The C++ compiler of this machine: CXX, or the first that is found."""
    named = os.environ.get("CXX")
    return next(filter(None, map(shutil.which, [named] if named else COMPILERS)), None)


@cache
def library(folder: Path, cxx: str) -> ctypes.CDLL:
    """The kernels, compiled with `cxx` unless `folder` has them.

    Raises:
        ValueError: they do not compile.
    """
    target = folder / f"kernels-{_fingerprint(cxx)}.so"
    if not target.exists():
        folder.mkdir(parents=True, exist_ok=True)
        logger.info("compiling the kernels into %s", target)
        # Aside, and moved when complete: several workers may start at once.
        with tempfile.TemporaryDirectory(dir=folder) as aside:
            made = Path(aside) / target.name
            _compile(cxx, made)
            made.replace(target)
    return ctypes.CDLL(str(target))


def _compile(cxx: str, target: Path) -> None:
    command = [cxx, *FLAGS, *map(str, sorted(SOURCES.glob("*.cpp"))), "-o", str(target)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ValueError(f"the kernels do not compile with {cxx}: {done.stderr[-2000:]}")


def _fingerprint(cxx: str) -> str:
    """Of all that decides what comes out: sources, flags, the compiler, and the processor that `native` means."""
    native = subprocess.run(
        [cxx, "-march=native", "-E", "-v", "-x", "c++", os.devnull], capture_output=True, text=True, check=False
    )
    parts = [source.read_bytes() for source in sorted([*SOURCES.glob("*.cpp"), *SOURCES.glob("*.h")])]
    parts += [" ".join(FLAGS).encode(), native.stderr.encode()]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]
