"""What is fetched from the hub: ids that are allowed, and nothing for which there is no room."""

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from huggingface_hub import ModelInfo
from huggingface_hub.errors import LocalEntryNotFoundError

from domain.operation import ErrorCode, OperationFailedError
from models import hub
from models.catalog import Catalog
from models.hub import Hub, Memory, UnknownModelError
from tests.models.test_catalog import write_model

MIB = 1 << 20
FILES = {"config.json": 1000, "model.safetensors": 100 * MIB, "tokenizer.json": 5 * MIB, "pytorch_model.bin": 900 * MIB}


@pytest.fixture
def fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The hub has every id, with FILES; those that were downloaded. The disk has 1 GiB left."""
    fetched: list[str] = []
    directory = write_model(tmp_path / "fetched")

    def download(name: str, **asked: Any) -> str:
        if asked["local_files_only"]:
            raise LocalEntryNotFoundError("it is not in the cache")
        fetched.append(name)
        return str(directory)

    monkeypatch.setattr(hub, "_asked", lambda _: answer(FILES))
    monkeypatch.setattr(hub, "snapshot_download", download)
    monkeypatch.setattr(hub, "hf_hub_download", lambda _, file, **__: str(directory / file))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1024 * MIB))
    return fetched


def answer(files: dict[str, int], **more: Any) -> ModelInfo:
    siblings = [{"rfilename": name, "size": size} for name, size in files.items()]
    return ModelInfo(id="org/tiny", siblings=siblings, **more)  # type: ignore[no-untyped-call]


@pytest.mark.parametrize(
    ("allowed", "is_allowed"),
    [(("*",), True), (("org/*",), True), (("other/*", "org/ti?y"), True), (("org/tiny",), True),
     ((), False), (("tiny",), False), (("ORG/*",), False), (("org",), False)],
)  # fmt: skip
def test_an_id_is_fetched_where_a_pattern_allows_it(
    fetched: list[str], allowed: tuple[str, ...], is_allowed: bool
) -> None:
    for ask in (Hub(allowed).card, Catalog([], hub=Hub(allowed)).directory):
        if is_allowed:
            ask("org/tiny")
        else:
            with pytest.raises(UnknownModelError, match="may not be fetched from the hub: CELERITY_HUB_MODELS names"):
                ask("org/tiny")
    assert fetched == ["org/tiny"] * is_allowed


def memory_of(free: int, bytes_per_weight: int = 4) -> Memory:
    return Memory(lambda: free, bytes_per_weight)


@pytest.mark.parametrize(
    ("disk_floor", "memory", "weights", "sentence"),
    [
        (0, None, None, None),
        (900 * MIB, memory_of(200 * MIB), None, None),
        (1000 * MIB, None, None, "takes 110101480 bytes of the disk, and its worker has 25165824 free above"),
        (2000 * MIB, None, None, "bytes of the disk, and its worker has 0 free above CELERITY_DISK_FLOOR_BYTES"),
        (0, memory_of(99 * MIB), None, "takes 104857600 bytes of memory, and its worker has 103809024 free"),
        (0, memory_of(200 * MIB, 4), 50 * MIB, None),
        (0, memory_of(199 * MIB, 4), 50 * MIB, "takes 209715200 bytes of memory"),
        (0, memory_of(199 * MIB, 2), 50 * MIB, None),
    ],
)
def test_a_model_is_fetched_where_it_fits_on_the_disk_and_into_memory(
    fetched: list[str], monkeypatch: pytest.MonkeyPatch, disk_floor: int, memory: Memory | None, weights: int | None,
    sentence: str | None,
) -> None:  # fmt: skip
    counted = {"safetensors": {"parameters": {"F32": weights}, "total": weights}} if weights else {}
    monkeypatch.setattr(hub, "_asked", lambda _: answer(FILES, **counted))
    asked = Hub(("*",), disk_floor, memory)
    if sentence is None:
        asked.directory("org/tiny")
        assert fetched == ["org/tiny"]
        return
    with pytest.raises(OperationFailedError, match=sentence) as refused:
        asked.directory("org/tiny")
    assert refused.value.error.code is ErrorCode.RESOURCE_EXHAUSTED
    assert fetched == []


def test_one_that_is_here_already_needs_no_room(fetched: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """As when a merged checkpoint of it is written, with the model in memory."""
    monkeypatch.setattr(hub, "try_to_load_from_cache", lambda *_: "there")
    Hub(("*",), 2000 * MIB, memory_of(0)).directory("org/tiny")
    assert fetched == ["org/tiny"]


def test_a_configuration_that_is_none_is_not_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "_asked", lambda _: answer(FILES | {"config.json": 1 << 40}))
    monkeypatch.setattr(hub, "hf_hub_download", lambda *_, **__: pytest.fail("it was fetched"))
    with pytest.raises(UnknownModelError, match=r"config\.json has 1099511627776 bytes"):
        Hub(("*",)).card("org/tiny")
