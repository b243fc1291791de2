"""The control groups of this process, by which containers are limited; see cgroups(7)."""

from collections.abc import Iterator
from pathlib import Path

MEMBERSHIPS, CGROUPS = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")


def own_groups(controller: str, memberships: Path = MEMBERSHIPS, cgroups: Path = CGROUPS) -> Iterator[tuple[Path, int]]:
    """The folders of the groups of a controller, from the process's own to the root, each with its version, 1 or 2.
    A container need not see the groups above its own."""
    lines = memberships.read_text().splitlines() if memberships.exists() else []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        root, version = (cgroups / controller, 1) if controllers else (cgroups, 2)
        own = root / path.lstrip("/")
        yield from ((folder, version) for folder in (own, *own.parents) if folder.is_relative_to(root))
