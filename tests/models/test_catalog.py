"""The catalog over directories that a test writes: config.json and an embedding."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from domain.model import NO_TOKENIZER, ModelCard
from models import folders
from models.catalog import Catalog
from models.hub import Hub, UnknownModelError
from tests.models.small import SIZES, WIDTH, write_weights

CONFIG = {"vocab_size": 32, "max_position_embeddings": 128, **SIZES}


def write_model(directory: Path, config: object = CONFIG, *, tokenizer: bool = True) -> Path:
    directory.mkdir(parents=True)
    (directory / "config.json").write_text(config if isinstance(config, str) else json.dumps(config))
    write_weights(directory, vocab_size=_vocab_size(config))
    if tokenizer:
        (directory / "tokenizer.json").write_text('{"model": {}}')
    return directory


def _vocab_size(config: object) -> int:
    found = config.get("vocab_size") if isinstance(config, dict) else None
    return found if type(found) is int else 9


def names(*folders: Path) -> list[str]:
    return [card.name for card in Catalog(folders).cards()]


def test_a_model_is_served_under_its_relative_path(tmp_path: Path) -> None:
    directory = write_model(tmp_path / "org" / "tiny")
    catalog = Catalog([tmp_path])
    assert catalog.cards() == (ModelCard(name="org/tiny", vocab_size=32, context_length=128, adapter_width=WIDTH),)
    assert catalog.directory("org/tiny") == directory


@pytest.mark.parametrize(
    ("config", "context_length"),
    [
        ({"vocab_size": 50257, "n_positions": 1024}, 1024),
        ({"vocab_size": 50432, "max_seq_len": 2048}, 2048),
        ({"text_config": {"vocab_size": 9, "max_position_embeddings": 77}}, 77),
        ({"vocab_size": 9, "text_config": {"max_position_embeddings": 33}}, 33),
    ],
)
def test_the_context_length_is_found_under_each_familys_name(
    tmp_path: Path, config: dict[str, object], context_length: int
) -> None:
    write_model(tmp_path / "m", config | SIZES)
    assert [card.context_length for card in Catalog([tmp_path]).cards()] == [context_length]


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ("{", "cannot be read"),
        (b"\xff".decode("latin-1"), "cannot be read"),
        ("[]", "not a JSON object"),
        ({"max_position_embeddings": 128}, "vocab_size"),
        ({"vocab_size": 32}, "max_position_embeddings"),
        ({"vocab_size": True, "n_positions": 8}, "vocab_size"),
        ({"vocab_size": 32, "n_positions": -1}, "n_positions"),
        ({"vocab_size": 32, "text_config": None}, "max_position_embeddings"),
        ({**CONFIG, "num_attention_heads": None}, "num_attention_heads"),
    ],
)
def test_a_model_that_cannot_be_described_is_logged_and_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, config: object, reason: str
) -> None:
    write_model(tmp_path / "org" / "broken", config)
    write_model(tmp_path / "sound")
    assert names(tmp_path) == ["sound"]
    assert "org/broken" in caplog.text and reason in caplog.text


def test_a_directory_without_weights_or_configuration_is_no_model(tmp_path: Path) -> None:
    (write_model(tmp_path / "no-weights") / "model.safetensors").unlink()
    (write_model(tmp_path / "no-config") / "config.json").unlink()
    write_model(tmp_path / ".hidden" / "m")
    assert names(tmp_path) == []


def test_nothing_inside_a_model_directory_is_another_model(tmp_path: Path) -> None:
    write_model(tmp_path / "m" / "checkpoint-10")
    for file in (tmp_path / "m" / "checkpoint-10").iterdir():
        (tmp_path / "m" / file.name).write_bytes(file.read_bytes())
    assert names(tmp_path) == ["m"]


def test_links_are_followed_and_circles_end(tmp_path: Path) -> None:
    write_model(tmp_path / "elsewhere" / "m")
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / "linked").symlink_to(tmp_path / "elsewhere" / "m")
    (folder / "circle").symlink_to(folder)
    (folder / "dangling").symlink_to(tmp_path / "gone")
    assert names(folder) == ["linked"]


def test_of_two_models_with_one_name_the_earlier_folders_counts(tmp_path: Path) -> None:
    first = write_model(tmp_path / "a" / "m")
    write_model(tmp_path / "b" / "m")
    assert Catalog([tmp_path / "a", tmp_path / "b"]).directory("m") == first


def test_a_folder_without_a_model_does_not_hide_the_model_of_a_later_folder(tmp_path: Path) -> None:
    (tmp_path / "a" / "m").mkdir(parents=True)
    second = write_model(tmp_path / "b" / "m")
    catalog = Catalog([tmp_path / "a", tmp_path / "b"])
    assert [card.name for card in catalog.cards()] == ["m"]
    assert catalog.directory("m") == second
    assert not catalog.unserved


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="gone is not a directory"):
        Catalog([tmp_path / "gone"])


def test_a_model_directory_in_the_place_of_a_folder_of_models_is_refused(tmp_path: Path) -> None:
    write_model(tmp_path / "model")
    with pytest.raises(ValueError, match="is itself a model; name the folder above it"):
        Catalog([tmp_path / "model"])


def test_the_tokenizer_is_seen_to_be_missing(tmp_path: Path) -> None:
    write_model(tmp_path / "m", tokenizer=False)
    assert [card.tokenizer_fault for card in Catalog([tmp_path]).cards()] == [NO_TOKENIZER]


@pytest.mark.parametrize("name", ["", "../m", "a/../b", "/etc", "a/b/c", "a b", "a\n", "a%2fb", "x" * 97, "a:b"])
def test_a_name_that_is_no_hub_id_is_unknown_and_reads_no_path(tmp_path: Path, name: str) -> None:
    write_model(tmp_path / "m")
    (tmp_path / "inner").mkdir()
    with pytest.raises(UnknownModelError, match="nor a hub id"):
        Catalog([tmp_path / "inner"]).directory(name)
    with pytest.raises(UnknownModelError, match="nor a hub id"):
        Hub(allowed=("*",)).card(name)


def test_a_hub_model_is_unknown_without_the_hub() -> None:
    """The hub is switched off for every test (see pyproject.toml)."""
    hub = Hub(allowed=("nobody/*",))
    with pytest.raises(UnknownModelError, match=r"nobody/nothing.*cannot be had"):
        hub.card("nobody/nothing")
    with pytest.raises(UnknownModelError, match=r"nobody/nothing.*cannot be had"):
        Catalog([], hub=hub).directory("nobody/nothing")


def test_folders_that_lie_deep_or_are_reached_by_very_many_paths_keep_no_other_from_being_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_model(tmp_path / "good")
    write_model(tmp_path / Path(*"abcdefg") / "deep-enough")
    (tmp_path / "deep" / Path(*"x" * 30)).mkdir(parents=True)
    for number in range(8):
        (tmp_path / ".mesh" / str(number)).mkdir(parents=True)
        for path in "abcd":
            (tmp_path / ".mesh" / str(number) / path).symlink_to(tmp_path / ".mesh" / str(number + 1))
    (tmp_path / "mesh").symlink_to(tmp_path / ".mesh" / "0")
    monkeypatch.setattr(folders, "MOST_FOLDERS", 100)
    catalog = Catalog([tmp_path])
    assert [card.name for card in catalog.cards()] == ["a/b/c/d/e/f/g/deep-enough", "good"]
    assert catalog.refused == {"deep/" + "/".join("x" * 7): folders.TOO_DEEP, "mesh": folders.TOO_MANY}


def test_what_this_process_may_not_read_is_refused_with_the_reason() -> None:
    with TemporaryDirectory() as made:
        folder = Path(made)
        folder.chmod(0o755)
        for name in ("closed", "config", "weights", "names-alone", "good"):
            (write_model(folder / name) / "model.safetensors").chmod(0o644)
        closed = {"closed": 0, "config/config.json": 0, "weights/model.safetensors": 0, "names-alone": 0o744}
        for name, mode in closed.items():
            (folder / name).chmod(mode)
        with as_nobody():
            catalog = Catalog([folder])
        (folder / "names-alone").chmod(0o755)
    assert [card.name for card in catalog.cards()] == ["good"]
    assert catalog.refused == {
        "closed": "its folder cannot be read: Permission denied",
        "config": "config.json cannot be read: Permission denied",
        "weights": "model.safetensors cannot be read: Permission denied",
        "names-alone": "config.json cannot be read: Permission denied",
    }


@contextmanager
def as_nobody() -> Iterator[None]:
    """Root may read everything."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(before)
