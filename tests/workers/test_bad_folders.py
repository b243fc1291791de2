"""Folders that somebody made to harm the worker that looks at them, or that are broken in a way that would: each is
refused with a sentence, and all others are served."""

import json
import os
import re
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from domain.codec import encode
from testing.tiny_model import make_tiny_model, reconfigured
from tests.workers.conftest import Begin
from workers import celery_app
from workers.engine.loading.description import describe as describe_it

INDEX, SHARD = "model.safetensors.index.json", "model-00001-of-00001.safetensors"
DEEP = '{"a":' * 100_000 + "1" + "}" * 100_000
TERABYTE = 1 << 40
Spoil = Callable[[Path], object]


def with_config(**fields: Any) -> Spoil:
    return lambda model: reconfigured(model, **fields)


def written(file: str, content: str | bytes) -> Spoil:
    return lambda model: (model / file).write_bytes(content if isinstance(content, bytes) else content.encode())


def huge(file: str, beginning: bytes = b"{") -> Spoil:
    """A terabyte of which nothing but its beginning takes place on the disk."""

    def spoil(model: Path) -> None:
        (model / file).write_bytes(beginning)
        os.truncate(model / file, TERABYTE)

    return spoil


def pipe(file: str) -> Spoil:
    def spoil(model: Path) -> None:
        (model / file).parent.mkdir(exist_ok=True)
        (model / file).unlink(missing_ok=True)
        os.mkfifo(model / file)

    return spoil


def plug(model: Path) -> None:
    folder = os.open(model, os.O_RDONLY)
    with socket.socket(socket.AF_UNIX) as end:
        # The addresses of sockets are short.
        end.bind(f"/proc/self/fd/{folder}/vocab.json")
    os.close(folder)


def link(file: str, target: str | Path) -> Spoil:
    def spoil(model: Path) -> None:
        (model / file).unlink(missing_ok=True)
        (model / file).symlink_to(target)

    return spoil


def sharded(places: object, *more: Spoil) -> Spoil:
    """The weights as a shard, under an index that says so for one tensor, and `places` for others."""

    def spoil(model: Path) -> None:
        (model / "model.safetensors").rename(model / SHARD)
        named = places if isinstance(places, dict) else {"other": places}
        (model / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": {"lm_head.weight": SHARD, **named}}))
        for each in more:
            each(model)

    return spoil


def beside(model: Path) -> None:
    """A folder outside of the model's, which a link inside leads to."""
    outside = model.parent.parent / "outside"
    outside.mkdir(exist_ok=True)
    shutil.copy(model / SHARD, outside / "model.safetensors")
    (model / "sub").symlink_to(outside)


FAULTS: dict[str, tuple[Spoil, str]] = {
    "tokens as a float": (with_config(vocab_size=1e25), "vocab_size as 1e.25, which is no whole number up to"),
    "too many tokens": (with_config(vocab_size=10**400), "vocab_size as 1000.*which is no whole number up to"),
    "too many layers": (with_config(num_hidden_layers=8000), "num_hidden_layers as 8000, .* up to 1024"),
    "layers as a float": (with_config(num_hidden_layers=1e9), "num_hidden_layers as 1000000000.0, .* up to 1024"),
    "layers inside": (with_config(vision_config={"depth": 2000}), "depth as 2000, .* up to 1024"),
    "too many experts": (with_config(num_local_experts=10**6), "num_local_experts as 1000000, .* up to"),
    "experts of layers": (with_config(num_hidden_layers=500, num_experts=500), "500 layers of 500 experts"),
    "too wide": (with_config(hidden_size=10**9), "hidden_size as 1000000000, .* up to 131072"),
    "too wide inside": (with_config(intermediate_size=2**40), "intermediate_size as .* up to 1048576"),
    "too many heads": (with_config(num_attention_heads=2**20), "num_attention_heads as 1048576, .* up to 4096"),
    "too many positions": (with_config(max_position_embeddings=2**40), "max_position_embeddings as .* up to 134217728"),
    "nested": (written("config.json", DEEP), "config.json cannot be read: it is nested too deeply"),
    "nested generation": (written("generation_config.json", DEEP), "generation_config.json .* nested too deeply"),
    "nested index": (sharded({}, written(INDEX, DEEP)), "index.json cannot be read: it is nested too deeply"),
    "bytes for text": (written("config.json", b'{"a": "\xff\xfe"}'), "config.json cannot be read as JSON"),
    "bytes for an index": (sharded({}, written(INDEX, b"\xff\x00")), "index.json cannot be read as JSON"),
    "huge config": (huge("config.json"), "config.json has 1099511627776 bytes, .* at most"),
    "huge tokenizer": (huge("tokenizer.json"), "tokenizer.json has 1099511627776 bytes, .* at most"),
    "huge template": (huge("chat_template.jinja"), "chat_template.jinja has 1099511627776 bytes"),
    "huge index": (sharded({}, huge(INDEX)), "index.json has 1099511627776 bytes"),
    "huge header": (
        huge("model.safetensors", (90_000_000).to_bytes(8, "little")), "the headers of the weights have more than",
    ),
    "header without end": (huge("model.safetensors", b"\xff" * 8), "model.safetensors .* is no safetensors file"),
    "pipe for config": (pipe("config.json"), "config.json is no plain file: take it away"),
    "pipe for weights": (pipe("model.safetensors"), "model.safetensors is no plain file"),
    "pipe for words": (pipe("merges.txt"), "merges.txt is no plain file"),
    "pipe for a template": (pipe("additional_chat_templates/a.jinja"), "a.jinja is no plain file"),
    "socket": (plug, "vocab.json is no plain file"),
    "device": (link("config.json", "/dev/zero"), "config.json is no plain file"),
    "device for words": (link("tokenizer.json", "/dev/zero"), "tokenizer.json is no plain file"),
    "link to itself": (link("config.json", "config.json"), "config.json cannot be read: Too many levels of"),
    "link to nothing": (link("model.safetensors", "gone"), "model.safetensors cannot be read: No such file"),
    "link out": (link("tokenizer_config.json", "/etc/hostname"), "tokenizer_config.json is a link that leads out"),
    "weights by a link": (link("model.safetensors", "../good/model.safetensors"), "is a link that leads out"),
    "shard by a link": (sharded(SHARD, link(SHARD, "../good/model.safetensors")), "is a link that leads out"),
    "shard above": (sharded("../good/model.safetensors"), r"no safetensors files of this folder: '\.\./good"),
    "shard at a path": (sharded("/etc/x.safetensors"), "no safetensors files of this folder: '/etc/x"),
    "shard through a link": (sharded("sub/model.safetensors", beside), "is a link that leads out"),
    "shard in a list": (sharded([SHARD]), r"no safetensors files of this folder: \['model"),
    "shard in an object": (sharded({"other": {}}), "no safetensors files of this folder: {}"),
    "shard of a long name": (sharded("x" * 5000 + ".safetensors"), "names files that are missing: xxx"),
    "shard of two lines": (sharded("a\nb.safetensors"), r"names files that are missing: a\\nb.safetensors"),
    "shard of no text": (sharded("\ud800.safetensors"), r"names files that are missing: \\ud800.safetensors"),
    # Names of folders, which those of the faults are.
    "line\nend": (lambda _: None, "characters that no request could name"),
    "\x1b[31mred": (lambda _: None, "characters that no request could name"),
    os.fsdecode(b"\xff\xfe"): (lambda _: None, "characters that no request could name"),
}  # fmt: skip


def test_each_is_refused_with_a_sentence_when_a_worker_starts_and_all_others_are_served(
    begin: Begin, tmp_path: Path
) -> None:
    models = tmp_path / "models"
    good = make_tiny_model(models / "good")
    for name, (spoil, _) in FAULTS.items():
        spoil(Path(shutil.copytree(good, models / name)))
    (models / "circle").symlink_to(models)
    (models / "itself").symlink_to("itself")
    harness = begin()
    said = harness.worker.announcement()
    assert {"good", "tiny"} <= {card.name for card in said.models} and encode(said)
    told = {name.encode("unicode_escape").decode(): sentence for name, (_, sentence) in FAULTS.items()}
    assert set(said.refused) == set(told)
    assert {
        name: said.refused[name] for name, sentence in told.items() if not re.search(sentence, said.refused[name])
    } == {}
    assert not any(str(tmp_path) in reason or not reason.isprintable() for reason in said.refused.values())
    assert harness.sample(harness.session())


def test_a_fault_of_the_machine_while_it_looks_at_a_folder_is_said_of_that_folder(
    begin: Begin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults = {"memory": MemoryError(), "disk": OSError(5, "Input/output error")}
    for name in faults:
        make_tiny_model(tmp_path / "models" / name)

    def failing(directory: Path) -> object:
        if directory.name in faults:
            raise faults[directory.name]
        return describe_it(directory)

    monkeypatch.setattr("workers.runtime.describe", failing)
    said = begin().worker.announcement()
    assert said.refused == {
        "memory": "there is no memory to look at its files",
        "disk": "its files cannot be read: Input/output error",
    }


def test_a_fault_that_nobody_thought_of_ends_the_worker_where_celery_would_go_on_without_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def failing(_: object) -> None:
        raise RecursionError("of ours")

    monkeypatch.setattr(celery_app, "open_runtime", failing)
    with pytest.raises(SystemExit, match="a fault of ours"):
        celery_app.become_worker(instance=None, conf=None)
