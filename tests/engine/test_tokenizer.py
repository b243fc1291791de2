"""A tokenizer that cannot be used does not keep its model from being served by token ids."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from domain.operation import ErrorCode
from domain.session import LoraConfig
from testing.tiny_model import make_tiny_model
from tests.engine.calls import failure_of, sample, sample_request
from tests.engine.conftest import StartEngine
from workers.engine.loading.model_files import load_tokenizer

DEEP = '{"a":' * 100_000 + "1" + "}" * 100_000
Spoil = Callable[[Path], object]


def written(text: str) -> Spoil:
    return lambda model: (model / "tokenizer.json").write_text(text)


def of_class(name: str, files: dict[str, bytes], **more: Any) -> Spoil:
    """A tokenizer_config.json that names a class, and what there is beside it in place of tokenizer.json."""

    def spoil(model: Path) -> None:
        (model / "tokenizer.json").unlink()
        (model / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": name, **more}))
        for file, content in files.items():
            (model / file).write_bytes(content)

    return spoil


def without_files(model: Path) -> None:
    for file in model.glob("tokenizer*"):
        file.unlink()


FAULTS: dict[str, tuple[Spoil, str]] = {
    "an empty object": (written("{}"), "the tokenizer cannot be loaded: KeyError 'added_tokens'"),
    "an empty file": (written(""), "the tokenizer cannot be loaded"),
    "nested deeply": (written(DEEP), "the tokenizer cannot be loaded: RecursionError"),
    "a missing package": (of_class("LlamaTokenizer", {"tokenizer.model": b"abc"}), "`tiktoken` is required"),
    "remote code": (of_class("Own", {}, auto_map={"AutoTokenizer": ["x.Own", None]}), "remote code.*never run here"),
    "a class without a vocabulary": (of_class("LlamaTokenizer", {}), "no token that has a text"),
    "no file": (without_files, "folder has no tokenizer"),
}


@pytest.mark.parametrize(("spoil", "fault"), FAULTS.values(), ids=FAULTS)
def test_the_model_samples_by_ids_and_stop_strings_are_refused_with_the_fault(
    tmp_path: Path, start_engine: StartEngine, spoil: Spoil, fault: str
) -> None:
    directory = make_tiny_model(tmp_path)
    spoil(directory)
    engine = start_engine()
    engine.create_adapter("s", directory, LoraConfig(), 0).result()
    assert len(sample(engine, [[1]], max_tokens=3)) == 1
    stopped = failure_of(engine.sample("s", sample_request([[1]], stop=("a",))))
    assert stopped.code is ErrorCode.INVALID_INPUT
    assert re.match(f"Stop strings need a tokenizer: .*{fault}.*Stop on token ids", stopped.message)
    assert str(tmp_path) not in stopped.message


def test_a_sound_tokenizer_has_no_fault(tiny: Path) -> None:
    tokenizer, fault = load_tokenizer(tiny)
    assert tokenizer is not None and fault == ""


def test_a_panic_in_the_library_is_a_fault_too(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rust's panics are no Exception; one would end the engine's only thread."""

    class PanicException(BaseException):
        pass

    def panic(*_: object, **__: object) -> None:
        raise PanicException("index out of bounds")

    monkeypatch.setattr("workers.engine.loading.model_files.AutoTokenizer.from_pretrained", panic)
    assert load_tokenizer(tiny) == (None, "the tokenizer cannot be loaded: PanicException index out of bounds")
