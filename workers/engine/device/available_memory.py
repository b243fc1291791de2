"""Memory that this process may use: the host's, or what a container's limit allows."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import psutil

from workers.engine.device.cgroups import CGROUPS, MEMBERSHIPS, own_groups


class _Version(NamedTuple):
    """The files of a memory cgroup; the line of memory.stat says how much of its use is reclaimable cache."""

    limit: str
    use: str
    cache: str


VERSIONS = {
    1: _Version("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    2: _Version("memory.max", "memory.current", "inactive_file"),
}


def available_bytes(memberships: Path = MEMBERSHIPS, cgroups: Path = CGROUPS) -> int:
    """Of the host's memory, and of each cgroup's that this process is in."""
    left = (limit - _in_use(folder, version) for folder, version, limit in _limits(memberships, cgroups))
    return max(0, min([psutil.virtual_memory().available, *left]))


def total_bytes(memberships: Path = MEMBERSHIPS, cgroups: Path = CGROUPS) -> int:
    """As `available_bytes`, with nothing in use."""
    return min([psutil.virtual_memory().total, *(limit for _, _, limit in _limits(memberships, cgroups))])


def _limits(memberships: Path, cgroups: Path) -> Iterator[tuple[Path, _Version, int]]:
    """Each group that has a limit, in bytes."""
    for folder, number in own_groups("memory", memberships, cgroups):
        version = VERSIONS[number]
        try:
            limit = (folder / version.limit).read_text().strip()
        except FileNotFoundError:
            # The root has no limit, and a container need not see the groups above its own.
            continue
        if limit != "max":
            yield folder, version, int(limit)


def _in_use(folder: Path, version: _Version) -> int:
    """Without cache that the kernel reclaims under pressure."""
    lines = (folder / "memory.stat").read_text().splitlines()
    cache = sum(int(line.split()[1]) for line in lines if line.startswith(f"{version.cache} "))
    return int((folder / version.use).read_text()) - cache
