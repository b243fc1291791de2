"""A container's CPU quota counts, not the processors of the host around it."""

import math
from pathlib import Path

import pytest
import torch

from workers.engine.device import threads
from workers.engine.device.threads import cpu_quota, use_threads


def quota(tmp_path: Path, memberships: str, files: dict[str, str]) -> float:
    (tmp_path / "memberships").write_text(memberships)
    for name, text in files.items():
        file = tmp_path / "cgroups" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n")
    return cpu_quota(tmp_path / "memberships", tmp_path / "cgroups")


@pytest.mark.parametrize(
    ("memberships", "files", "cpus"),
    [
        ("0::/\n", {"cpu.max": "150000 100000"}, 1.5),
        ("0::/\n", {"cpu.max": "max 100000"}, math.inf),
        ("0::/a/b\n", {"a/cpu.max": "200000 100000", "a/b/cpu.max": "400000 100000"}, 2),
        ("4:cpu,cpuacct:/d\n", {"cpu/cpu.cfs_quota_us": "50000", "cpu/cpu.cfs_period_us": "100000"}, 0.5),
        ("4:cpu,cpuacct:/d\n", {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, math.inf),
        ("", {}, math.inf),
    ],
)
def test_the_quota_of_the_control_groups(tmp_path: Path, memberships: str, files: dict[str, str], cpus: float) -> None:
    assert quota(tmp_path, memberships, files) == cpus


@pytest.mark.parametrize(("cpus", "asked", "used"), [(1.5, 0, 2), (0.3, 0, 1), (math.inf, 0, 3), (1.0, 2, 2)])
def test_threads_follow_the_quota_unless_a_number_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, cpus: float, asked: int, used: int
) -> None:
    monkeypatch.setattr(threads, "cpu_quota", lambda: cpus)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        use_threads(asked)
        assert torch.get_num_threads() == used
    finally:
        torch.set_num_threads(before)
