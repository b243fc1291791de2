"""How much more memory this process may take: what the host has, or what a container's limit leaves."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import psutil

from workers.engine.cgroups import CGROUPS, MEMBERSHIPS, own_groups


class _Version(NamedTuple):
    """The files of a memory cgroup; a line of memory.stat says how much of its use is cache that goes when it must."""

    limit: str
    use: str
    cache: str


VERSIONS = {
    1: _Version("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    2: _Version("memory.max", "memory.current", "inactive_file"),
}


def available_bytes(memberships: Path = MEMBERSHIPS, cgroups: Path = CGROUPS) -> int:
    """Of the host's memory, and of each cgroup's that this process is in."""
    return max(0, min([psutil.virtual_memory().available, *_left(memberships, cgroups)]))


def _left(memberships: Path, cgroups: Path) -> Iterator[int]:
    """What each limit that there is leaves."""
    for folder, number in own_groups("memory", memberships, cgroups):
        version = VERSIONS[number]
        try:
            limit, use = (folder / version.limit).read_text().strip(), int((folder / version.use).read_text())
            lines = (folder / "memory.stat").read_text().splitlines()
        except FileNotFoundError:
            # The root has no limit, and a container need not see the groups above its own.
            continue
        if limit != "max":
            cache = sum(int(line.split()[1]) for line in lines if line.startswith(f"{version.cache} "))
            yield int(limit) - use + cache
