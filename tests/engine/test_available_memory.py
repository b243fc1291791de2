"""A container's memory limit counts, not the memory of the host around it."""

from pathlib import Path

import psutil
import pytest
import torch

from domain.operation import ErrorCode
from domain.session import LoraConfig
from tests.engine.calls import failure_of, sample, sample_request
from tests.engine.conftest import StartEngine
from workers.engine.device.available_memory import available_bytes, total_bytes
from workers.engine.loading.base_model import BaseModel
from workers.engine.sampling import decode_batch

NO_LIMIT_OF_V1 = "9223372036854771712"


def write(folder: Path, files: dict[str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(f"{text}\n")


def version_1(limit: str, use: str, cache: str) -> dict[str, str]:
    stat = f"inactive_file 7\ntotal_inactive_file {cache}\ntotal_unevictable 0"
    return {"memory.limit_in_bytes": limit, "memory.usage_in_bytes": use, "memory.stat": stat}


def version_2(limit: str, use: str, cache: str) -> dict[str, str]:
    return {"memory.max": limit, "memory.current": use, "memory.stat": f"anon 5\ninactive_file {cache}\nslab 1"}


def left(tmp_path: Path, memberships: str) -> int:
    (tmp_path / "memberships").write_text(memberships)
    return available_bytes(tmp_path / "memberships", tmp_path / "cgroups")


def test_a_container_of_version_2_has_what_its_limit_leaves_and_the_cache_that_would_go(tmp_path: Path) -> None:
    write(tmp_path / "cgroups", version_2("10000", "4000", "1500"))
    assert left(tmp_path, "0::/\n") == 7500


def test_a_container_of_version_1_sees_its_own_group_at_the_root(tmp_path: Path) -> None:
    write(tmp_path / "cgroups" / "memory", version_1("10000", "4000", "1500"))
    assert left(tmp_path, "5:cpu,cpuacct:/docker/1f\n4:memory:/docker/1f\n0::/\n") == 7500


def test_the_smallest_of_nested_limits_counts(tmp_path: Path) -> None:
    write(tmp_path / "cgroups" / "user.slice", version_2("3000", "2000", "0"))
    write(tmp_path / "cgroups" / "user.slice" / "celerity.service", version_2("9000", "1000", "0"))
    assert left(tmp_path, "0::/user.slice/celerity.service\n") == 1000


def test_a_container_that_is_over_its_limit_has_nothing_left(tmp_path: Path) -> None:
    write(tmp_path / "cgroups", version_2("1000", "1200", "0"))
    assert left(tmp_path, "0::/\n") == 0


@pytest.mark.parametrize(
    ("memberships", "files"),
    [("", {}), ("0::/\n", version_2("max", "4000", "0")), ("4:memory:/\n", version_1(NO_LIMIT_OF_V1, "4000", "0"))],
)
def test_without_a_limit_it_is_the_hosts_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, memberships: str, files: dict[str, str]
) -> None:
    host = psutil.virtual_memory()
    monkeypatch.setattr(psutil, "virtual_memory", lambda: host)
    for folder in ("", "memory"):
        write(tmp_path / "cgroups" / folder, files)
    assert left(tmp_path, memberships) == host.available


@pytest.mark.parametrize(("limit", "total"), [("10000", 10000), ("max", psutil.virtual_memory().total)])
def test_a_containers_limit_is_all_the_memory_there_is(tmp_path: Path, limit: str, total: int) -> None:
    write(tmp_path / "cgroups", version_2(limit, "4000", "0"))
    (tmp_path / "memberships").write_text("0::/\n")
    assert total_bytes(tmp_path / "memberships", tmp_path / "cgroups") == total


def test_the_cache_of_a_container_has_half_of_its_limit(
    tiny: Path, start_engine: StartEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = BaseModel(tiny, torch.device("cpu"), torch.float32).kv_bytes_per_token
    monkeypatch.setattr(decode_batch, "total_bytes", lambda: 2 * 20 * token)
    engine = start_engine()
    engine.create_adapter("s", tiny, LoraConfig(), 0).result()
    refused = failure_of(engine.sample("s", sample_request([range(5)], max_tokens=30)))
    assert refused.code is ErrorCode.RESOURCE_EXHAUSTED
    assert "this device holds 20." in refused.message
    assert sample(engine, [range(5)], max_tokens=15)
