"""Free memory of a device, and settings of glibc's allocator."""

import ctypes
import sys

import torch

from workers.engine.device.available_memory import available_bytes
from workers.engine.device.available_memory import total_bytes as total_bytes_of_host

# Of mallopt. Larger blocks have pages of their own, which go back when they are freed; smaller ones would too, but
# asking for their pages again each time costs a third of the speed at 1 MiB.
M_MMAP_THRESHOLD = -3
LARGE_BYTES = 32 << 20


def free_bytes(device: torch.device) -> int:
    """Thread-safe."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    return available_bytes()


def total_bytes(device: torch.device) -> int:
    """All memory, used or free."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[1])
    return total_bytes_of_host()


def give_back() -> None:
    """Returns free memory to the system: after loading a model glibc keeps about as much as the model takes in bf16."""
    if malloc_trim := _of_glibc("malloc_trim"):
        malloc_trim(0)


def map_large_blocks() -> None:
    """glibc raises that bound as it goes, and with it what it keeps of the heap's free end: in training, a quarter more
    memory. A bound that is set stays, and so does the other."""
    if mallopt := _of_glibc("mallopt"):
        mallopt(M_MMAP_THRESHOLD, LARGE_BYTES)


def _of_glibc(name: str) -> "ctypes._NamedFuncPointer | None":
    return getattr(ctypes.CDLL(None), name, None) if sys.platform == "linux" else None
