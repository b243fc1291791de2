"""Memory that was freed, back to the operating system."""

import ctypes
import sys


def give_back() -> None:
    """glibc keeps what loading a model leaves free: about as much again as the model in bf16. Elsewhere, nothing."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)
