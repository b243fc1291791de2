"""Whether this process uses the kernels, and which library of them."""

import ctypes
import logging
from pathlib import Path

import torch

from workers.engine.kernels.levels import chosen
from workers.engine.kernels.library import is_whole, kernels_folder, library_file, load

MODES = ("auto", "native", "torch")
NOT_BUILT = "no kernels were built for this processor (`make setup` does, with a C++ compiler such as g++)"
DTYPES = {torch.float32: "float32", torch.bfloat16: "bfloat16"}

logger = logging.getLogger(__name__)

_chosen: list[ctypes.CDLL | None] = []


def choose(mode: str) -> None:
    """Whether this process uses the kernels, to be said before a model is loaded: "auto" does where they were built
    for this processor, "native" insists, "torch" does without.

    Raises:
        ValueError: a mode or a CPU level that is not known, a level that this processor cannot run, kernels that
            cannot be loaded, or "native" without kernels.
    """
    if mode not in MODES:
        raise ValueError(f"kernels {mode!r} are not known; use one of {', '.join(MODES)}")
    file = None if mode == "torch" else built()
    if file is None and mode == "native":
        raise ValueError(f"kernels 'native' are not here: {NOT_BUILT}")
    if file is None and mode == "auto":
        logger.warning("%s; torch's operations do the work on a CPU, about half as fast", NOT_BUILT)
    _chosen[:] = [None if file is None else load(file)]


def built() -> Path | None:
    """The library for the chosen level of this processor; None where it has no such level, or was not built."""
    level = chosen()
    file = level and library_file(kernels_folder(), level)
    return file if file and is_whole(file) else None


def have_kernels(device: torch.device, dtype: torch.dtype) -> bool:
    """Whether tensors like these are computed by our kernels."""
    if device.type != "cpu" or dtype not in DTYPES:
        return False
    if not _chosen:
        choose("auto")
    return _chosen[0] is not None


def library() -> ctypes.CDLL:
    """The kernels that were chosen."""
    assert _chosen and _chosen[0] is not None
    return _chosen[0]
