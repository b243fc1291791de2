"""What the files of a model directory tell before a tensor is loaded: each fault is a sentence that names the file."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from safetensors.numpy import save_file

from domain.model import NO_TOKENIZER
from models.catalog import Catalog, RefusedModelError
from tests.models.test_catalog import CONFIG, names, write_model

POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:0f\nsize 4\n"
DEEP = '{"a":' * 100_000 + "1" + "}" * 100_000
INDEX = "model.safetensors.index.json"
FIRST, SECOND = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
Spoil = Callable[[Path], object]


def written(file: str, text: str) -> Spoil:
    return lambda model: (model / file).write_text(text)


def with_config(**fields: Any) -> Spoil:
    return written("config.json", json.dumps(CONFIG | fields))


def cut(model: Path) -> None:
    file = model / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-4])


def sharded(weight_map: object, **more: object) -> Spoil:
    """The weights in one of two shards, under an index."""

    def spoil(model: Path) -> None:
        (model / "model.safetensors").rename(model / FIRST)
        (model / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": weight_map} | more))

    return spoil


def in_eight_bits(model: Path) -> None:
    header = b'{"w": {"dtype": "F8_E4M3", "shape": [32], "data_offsets": [0, 32]}}'
    (model / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(32))


def as_a_pickle(model: Path) -> None:
    (model / "model.safetensors").rename(model / "pytorch_model.bin")


def as_a_pipe(model: Path) -> None:
    (model / "config.json").unlink()
    os.mkfifo(model / "config.json")


def as_a_folder(model: Path) -> None:
    (model / "config.json").unlink()
    (model / "config.json").mkdir()


FAULTS: dict[str, tuple[Spoil, str]] = {
    "a Git LFS pointer": (written("model.safetensors", POINTER), "safetensors is a Git LFS pointer.*git lfs pull"),
    "a pointer for a config": (written("config.json", POINTER), "config.json is a Git LFS pointer.*git lfs pull"),
    "a file cut short": (cut, r"model.safetensors \(\d+ bytes\) was cut short .*download it again"),
    "an empty file": (written("model.safetensors", ""), r"model.safetensors \(0 bytes\) was cut short"),
    "a page in its place": (written("model.safetensors", "<!doctype html>" * 9), "no safetensors file"),
    "a missing shard": (sharded({"w": FIRST, "v": SECOND}), f"index.json names files that are missing: {SECOND}"),
    "a shard without its tensor": (sharded({"lm_head.weight": FIRST}), "do not hold: lm_head.weight"),
    "a shard elsewhere": (sharded({"w": "../other/model.safetensors"}), "files of this folder: '../other"),
    "a shard at a path": (sharded({"w": "/etc/model.safetensors"}), "no safetensors files of this folder: '/etc"),
    "a shard that is no name": (sharded({"w": 7}), "no safetensors files of this folder: 7"),
    "a pickled shard": (sharded({"w": "model.bin"}), "no safetensors files of this folder: 'model.bin'"),
    "an index without a map": (sharded([]), "no metadata or no weight_map"),
    "an index without metadata": (sharded({"w": FIRST}, metadata=None), "no metadata or no weight_map"),
    "weights in fp8": (in_eight_bits, "holds w as F8_E4M3.*not quantized"),
    "gptq": (with_config(quantization_config={"quant_method": "gptq"}), r"_config \(gptq\): the weights"),
    "gptq inside": (with_config(text_config={"quantization_config": {"quant_method": "awq"}}), r"\(awq\)"),
    "a quantizer without a name": (with_config(quantization_config="x"), "without a quant_method"),
    "compressed tensors": (with_config(compression_config={"format": "dense"}), "compression_config"),
    "one token too many": (with_config(vocab_size=33), r"vocab_size as 33, .*embed_tokens.weight is \[32, 8\]"),
    "one token too few": (with_config(vocab_size=31), "vocab_size as 31"),
    "a float of tokens": (with_config(vocab_size=1e25), "vocab_size as 1e.25, which is no whole number up to"),
    "an integer of tokens": (with_config(vocab_size=10**400), "vocab_size as 1000.*which is no whole number"),
    "an endless context": (with_config(max_position_embeddings=float("inf")), "max_position_embeddings as inf"),
    "a billion layers": (with_config(num_hidden_layers=10**9), "num_hidden_layers as 1000000000, .* up to 1024"),
    "a billion layers inside": (with_config(vision_config={"num_layers": 10**9}), "num_layers as 1000000000"),
    "a billion layers of a decoder": (with_config(decoder_layers=10**9), "decoder_layers as 1000000000"),
    "a billion layers by turns": (with_config(attention_types=[[["global"], 10**9]]), "attention_types as 1000000000"),
    "a billion labels": (with_config(text_config={"num_labels": 10**9}), "num_labels as 1000000000, .* up to 65536"),
    "a billion experts": (with_config(num_local_experts=10**9), "num_local_experts as 1000000000"),
    "a config nested deeply": (written("config.json", DEEP), "config.json cannot be read: it is nested too deeply"),
    "an index nested deeply": (lambda model: (sharded({})(model), written(INDEX, DEEP)(model)), "nested too deeply"),
    "a number of 5,000 digits": (written("config.json", '{"v": %s}' % ("1" * 5000)), "config.json cannot be read"),
    "a broken generation config": (written("generation_config.json", "{"), "generation_config.json cannot be read"),
    "a list of a generation config": (written("generation_config.json", "[]"), "generation_config.json is not a JSON"),
    "an adapter": (written("adapter_config.json", "{}"), "PEFT adapter; merge it"),
    "weights under another name": (with_config(transformers_weights="w.safetensors"), "transformers_weights"),
    "weights of another format": (as_a_pickle, "save_pretrained"),
    "no config": (lambda model: (model / "config.json").unlink(), "config.json cannot be read: No such file"),
    "a config that is a pipe": (as_a_pipe, "config.json is no plain file"),
    "a config that is a folder": (as_a_folder, "config.json is no file"),
}  # fmt: skip


@pytest.mark.parametrize(("spoil", "sentence"), FAULTS.values(), ids=FAULTS)
def test_a_model_that_cannot_be_served_is_refused_with_the_reason_and_harms_no_other(
    tmp_path: Path, spoil: Spoil, sentence: str
) -> None:
    model = write_model(tmp_path / "org" / "bad")
    write_model(tmp_path / "good")
    assert names(tmp_path) == ["good", "org/bad"]
    spoil(model)
    catalog = Catalog([tmp_path])
    assert [card.name for card in catalog.cards()] == ["good"] and list(catalog.refused) == ["org/bad"]
    with pytest.raises(RefusedModelError, match=f"the base model 'org/bad' is refused: .*{sentence}"):
        catalog.directory("org/bad")
    assert str(tmp_path) not in catalog.refused["org/bad"]


def test_shards_under_an_index_are_one_model(tmp_path: Path) -> None:
    model = write_model(tmp_path / "m")
    sharded({"model.embed_tokens.weight": FIRST, "head": SECOND})(model)
    save_file({}, model / SECOND)
    assert "do not hold: head" in Catalog([tmp_path]).refused["m"]
    sharded_weights = {"model.embed_tokens.weight": FIRST}
    (model / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": sharded_weights}))
    assert names(tmp_path) == ["m"]


def test_a_folder_without_a_model_is_refused_rather_than_sought_on_the_hub(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "org" / "notes").mkdir(parents=True)
    catalog = Catalog([tmp_path])
    assert sorted(catalog.unserved) == ["empty", "org/notes"] and not catalog.refused
    with pytest.raises(RefusedModelError, match="'org/notes' is refused: its folder has neither"):
        catalog.directory("org/notes")


def test_a_disk_full_of_folders_is_not_all_announced(tmp_path: Path) -> None:
    for number in range(150):
        (tmp_path / str(number)).mkdir()
    write_model(tmp_path / "m", CONFIG | {"vocab_size": None})
    assert len(Catalog([tmp_path]).unserved) == 101 and "m" in Catalog([tmp_path]).unserved


def test_a_folder_with_stray_weights_hides_no_model_below_it(tmp_path: Path) -> None:
    write_model(tmp_path / "org" / "m")
    (tmp_path / "org" / "old.bin").touch()
    assert names(tmp_path) == ["org/m"] and list(Catalog([tmp_path]).refused) == ["org"]


def test_a_name_that_is_not_utf8_and_a_reason_that_is_not_text_can_still_be_announced(tmp_path: Path) -> None:
    write_model(tmp_path / os.fsdecode(b"\xff"))
    catalog = Catalog([tmp_path])
    catalog.refuse("strange", "\ud800" + "x" * 10_000)
    assert msgspec.msgpack.encode((catalog.cards(), catalog.refused))
    assert list(catalog.refused) == ["\\udcff", "strange"]
    assert len(catalog.refused["strange"]) <= 500


def test_what_loading_has_shown_is_refused_from_then_on(tmp_path: Path) -> None:
    write_model(tmp_path / "m")
    catalog = Catalog([tmp_path])
    catalog.refuse("m", "its layers are strange")
    assert catalog.cards() == ()
    with pytest.raises(RefusedModelError, match="its layers are strange"):
        catalog.directory("m")


def test_a_users_broken_copy_is_not_served_from_the_next_folder(tmp_path: Path) -> None:
    write_model(tmp_path / "a" / "m", "{")
    write_model(tmp_path / "b" / "m")
    catalog = Catalog([tmp_path / "a", tmp_path / "b"])
    assert catalog.cards() == () and list(catalog.refused) == ["m"]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (None, NO_TOKENIZER),
        ("{}", "tokenizer.json holds no tokenizer: .*`model`"),
        ("", "tokenizer.json holds no tokenizer"),
        (POINTER, "tokenizer.json is a Git LFS pointer.*git lfs pull"),
        (DEEP, "tokenizer.json holds no tokenizer: .*recursion"),
        ('{"model": {"type": "BPE"}}', "^$"),
    ],
    ids=["none", "an empty object", "an empty file", "a pointer", "a deep one", "a sound one"],
)
def test_a_model_with_a_broken_tokenizer_is_served_and_its_card_says_what_is_wrong(
    tmp_path: Path, text: str | None, fault: str
) -> None:
    model = write_model(tmp_path / "m", tokenizer=False)
    if text is not None:
        (model / "tokenizer.json").write_text(text)
    (card,) = Catalog([tmp_path]).cards()
    assert card.vocab_size == 32
    assert re.search(fault, card.tokenizer_fault)
