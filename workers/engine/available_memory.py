"""How much more memory this process may take: what the host has, or what a container's limit leaves."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import psutil

MEMBERSHIPS, CGROUPS = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")


class _Version(NamedTuple):
    """The files of a memory cgroup; a line of memory.stat says how much of its use is cache that goes when it must."""

    limit: str
    use: str
    cache: str


V1 = _Version("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
V2 = _Version("memory.max", "memory.current", "inactive_file")


def available_bytes(memberships: Path = MEMBERSHIPS, cgroups: Path = CGROUPS) -> int:
    """Of the host's memory, and of each cgroup's that this process is in."""
    return max(0, min([psutil.virtual_memory().available, *_left(memberships, cgroups)]))


def _left(memberships: Path, cgroups: Path) -> Iterator[int]:
    """What each limit that there is leaves."""
    for folder, version in _folders(memberships, cgroups):
        try:
            limit, use = (folder / version.limit).read_text().strip(), int((folder / version.use).read_text())
            lines = (folder / "memory.stat").read_text().splitlines()
        except FileNotFoundError:
            # The root has no limit, and a container need not see the groups above its own.
            continue
        if limit != "max":
            cache = sum(int(line.split()[1]) for line in lines if line.startswith(f"{version.cache} "))
            yield int(limit) - use + cache


def _folders(memberships: Path, cgroups: Path) -> Iterator[tuple[Path, _Version]]:
    """Those of the groups of this process, from its own to the root; see cgroups(7)."""
    lines = memberships.read_text().splitlines() if memberships.exists() else []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        root, version = (cgroups / "memory", V1) if controllers else (cgroups, V2)
        own = root / path.lstrip("/")
        yield from ((folder, version) for folder in (own, *own.parents) if folder.is_relative_to(root))
