"""Where the kernels lie that were built, a library for each instruction level, and how one is loaded."""

import ctypes
import hashlib
import os
from functools import cache
from pathlib import Path

from workers.engine.kernels.levels import Level

SOURCES = Path(__file__).parent
# -ffp-contract says what becomes of a * b + c: one rounding, in the sampler as in the trainer.
FLAGS = ("-std=c++20", "-O3", "-ffp-contract=fast", "-fno-math-errno", "-fopenmp", "-fPIC")

# At the end of a file that is whole: to load one that was cut short kills the process.
END = b"celerity"
ADVICE = "let CELERITY_KERNELS_DIR name a folder that can be written and run from, or choose CELERITY_KERNELS=torch"


def kernels_folder() -> Path:
    """That of CELERITY_KERNELS_DIR, or one in this user's cache. A relative XDG_CACHE_HOME does not count, as its
    specification has it.

    Raises:
        ValueError: there is none.
    """
    if named := os.environ.get("CELERITY_KERNELS_DIR"):
        return Path(named)
    cache_home = Path(os.environ.get("XDG_CACHE_HOME", ""))
    try:
        return (cache_home if cache_home.is_absolute() else Path.home() / ".cache") / "celerity"
    except RuntimeError as error:
        raise ValueError(f"this user has no home to keep the kernels in: {ADVICE}") from error


def library_file(folder: Path, level: Level) -> Path:
    """The library of a level for the sources that lie here."""
    return folder / f"kernels-{level.name}-{_fingerprint(level)}.so"


def is_whole(file: Path) -> bool:
    if not file.exists():
        return False
    with file.open("rb") as opened:
        opened.seek(0, os.SEEK_END)
        opened.seek(max(0, opened.tell() - len(END)))
        return opened.read() == END


@cache
def load(file: Path) -> ctypes.CDLL:
    """Raises ValueError when the file cannot be loaded, such as from a folder that nothing may be run from."""
    try:
        return ctypes.CDLL(str(file))
    except OSError as error:
        raise ValueError(f"the kernels in {file} cannot be loaded ({error}): {ADVICE}") from error


@cache
def _fingerprint(level: Level) -> str:
    """Of all that decides what comes out, save the compiler, which need not be here when they are loaded."""
    parts = [source.read_bytes() for source in sorted([*SOURCES.glob("*.cpp"), *SOURCES.glob("*.h")])]
    return hashlib.sha256(b"\0".join([*parts, " ".join((*FLAGS, *level.flags)).encode()])).hexdigest()[:16]
