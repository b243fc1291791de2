"""How many threads compute: as many as torch would have, and no more than a container may use."""

import math
import threading
from collections.abc import Iterator
from pathlib import Path

import torch

from workers.engine.device.cgroups import CGROUPS, MEMBERSHIPS, own_groups


def use_threads(count: int) -> None:
    """In the calling thread; 0 chooses. OpenMP keeps the number for each thread that begins parallel work."""
    # Asked first: when it is first asked, a thread takes over what any other has set last, whatever it has set itself.
    here = torch.get_num_threads()
    torch.set_num_threads(count or min(here, math.ceil(min(cpu_quota(), 1 << 16))))


def use_half_of_the_threads() -> None:
    """In the calling thread, and not in those that begin later."""
    before = torch.get_num_threads()
    torch.set_num_threads(max(1, before // 2))
    restoring = threading.Thread(target=torch.set_num_threads, args=(before,))
    restoring.start()
    restoring.join()


def cpu_quota(memberships: Path = MEMBERSHIPS, cgroups: Path = CGROUPS) -> float:
    """CPUs that the control groups of this process let it use, such as 1.5; inf without a limit. With more threads than
    these a group stands still for the rest of each period."""
    return min(_quotas(memberships, cgroups), default=math.inf)


def _quotas(memberships: Path, cgroups: Path) -> Iterator[float]:
    for folder, version in own_groups("cpu", memberships, cgroups):
        try:
            if version == 2:
                quota, period = (folder / "cpu.max").read_text().split()
            else:
                quota, period = ((folder / f"cpu.cfs_{name}_us").read_text().strip() for name in ("quota", "period"))
        except FileNotFoundError:
            # The root has no limit.
            continue
        if quota not in ("max", "-1"):
            yield int(quota) / int(period)


def choose_vector_math() -> None:
    """Has MKL choose its vector math (VML) for this processor, by which torch computes exp, log, sin, cos and their
    like on x86-64: in one thread, before several of them ask for it at once.

    It chooses at a process's first call. Where that came from several threads, one of them could be given functions of
    half the digits: seen in one process of 500 on two busy cores (pytorch/pytorch#188792, mended in MKL 2025).
    """
    for function in (torch.exp, torch.log, torch.sin, torch.cos, torch.tanh, torch.erf, torch.sqrt):
        for dtype in (torch.float32, torch.float64):
            function(torch.ones(1, dtype=dtype))
