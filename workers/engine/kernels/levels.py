"""The instruction levels that the kernels are built for, and which of them this processor has."""

import ctypes
import os
import platform
from dataclasses import dataclass
from pathlib import Path

CPU_INFO = Path("/proc/cpuinfo")
AUTO = "auto"
SYS_ARCH_PRCTL, ARCH_REQ_XCOMP_PERM, XTILEDATA = 158, 0x1023, 18


@dataclass(frozen=True)
class Level:
    """`features` as Linux names them in /proc/cpuinfo; `flags` are the compiler's."""

    name: str
    machine: str
    flags: tuple[str, ...]
    features: frozenset[str]


_V3 = frozenset({"avx2", "fma", "bmi1", "bmi2", "f16c", "movbe", "abm"})
_V4 = _V3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
_MATRICES = frozenset({"amx_tile", "amx_bf16"})
_AMX = _V4 | _MATRICES | {"avx512_bf16"}
# The best of a machine last. The x86-64 levels are those of its psABI.
LEVELS = (
    Level("v3", "x86_64", ("-march=x86-64-v3",), _V3),
    Level("v4", "x86_64", ("-march=x86-64-v4",), _V4),
    Level("v4-bf16", "x86_64", ("-march=x86-64-v4", "-mavx512bf16"), _V4 | {"avx512_bf16"}),
    Level("v4-amx", "x86_64", ("-march=x86-64-v4", "-mavx512bf16", "-mamx-tile", "-mamx-bf16"), _AMX),
    Level("neon", "aarch64", ("-march=armv8-a",), frozenset({"asimd"})),
)
NAMES = tuple(level.name for level in LEVELS)


def level_of(name: str) -> Level:
    """Raises ValueError for a name that is not one of NAMES."""
    for level in LEVELS:
        if level.name == name:
            return level
    raise ValueError(f"CPU level {name!r} is not known; use auto or one of {', '.join(NAMES)}")


def usable() -> tuple[Level, ...]:
    """The levels that this processor can run, the best of them last; none of them where Linux does not tell."""
    features = _features()
    return tuple(level for level in LEVELS if level.machine == platform.machine() and level.features <= features)


def chosen() -> Level | None:
    """That of CELERITY_CPU_LEVEL, or the best of this processor's; None where it has none.

    Every process that loads the kernels reads it here: workers, benchmarks and tests.

    Raises:
        ValueError: a level that is not known, or that this processor cannot run.
    """
    name, levels = os.environ.get("CELERITY_CPU_LEVEL") or AUTO, usable()
    if name == AUTO:
        return levels[-1] if levels else None
    level = level_of(name)
    if level not in levels:
        have = ", ".join(level.name for level in levels) or "none of them"
        raise ValueError(f"CELERITY_CPU_LEVEL {name} needs instructions that this processor lacks; it has {have}")
    return level


def _features() -> frozenset[str]:
    """Of the first processor: the kernel lists what all of them have in common."""
    if not CPU_INFO.exists():
        return frozenset()
    for line in CPU_INFO.read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() in ("flags", "Features"):
            features = frozenset(value.split())
            if features >= _MATRICES and not _grants_matrices():
                return features - _MATRICES
            return features
    return frozenset()


def _grants_matrices() -> bool:
    """Asks Linux for the registers of AMX, which a process has only on request."""
    return bool(ctypes.CDLL(None).syscall(SYS_ARCH_PRCTL, ARCH_REQ_XCOMP_PERM, XTILEDATA) == 0)
