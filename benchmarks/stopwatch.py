"""What a call takes: seconds by the host's clock or the GPU's events, and the most memory it had at once."""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

STATUS = Path("/proc/self/status")
FORGET_PEAK = "5"


@dataclass(frozen=True)
class Reading:
    """`peak_bytes` is the process's resident memory on a CPU and torch's on a GPU; `growth_bytes` what of it the call
    added to what was there before."""

    seconds: float
    peak_bytes: int
    growth_bytes: int
    answer: Any


def read(call: Callable[[], Any], device: str) -> Reading:
    return _read_cuda(call) if device == "cuda" else _read_cpu(call)


def _read_cpu(call: Callable[[], Any]) -> Reading:
    """The kernel keeps the peak (VmHWM); it is made to forget earlier ones first."""
    Path("/proc/self/clear_refs").write_text(FORGET_PEAK)
    before = _status("VmRSS")
    began = time.perf_counter()
    answer = call()
    seconds = time.perf_counter() - began
    peak = _status("VmHWM")
    return Reading(seconds, peak, peak - before, answer)


def _read_cuda(call: Callable[[], Any]) -> Reading:
    import torch

    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    answer = call()
    end.record()
    torch.cuda.synchronize()
    peak = torch.cuda.max_memory_allocated()
    return Reading(start.elapsed_time(end) / 1000, peak, peak - before, answer)


def _status(field: str) -> int:
    for line in STATUS.read_text().splitlines():
        if line.startswith(field + ":"):
            return 1024 * int(line.split()[1])
    sys.exit(f"{STATUS} has no {field}: memory is measured on Linux")
