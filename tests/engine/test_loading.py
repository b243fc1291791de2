"""A directory is loaded whole, or refused: nothing that transformers would fill, leave out or guess is served."""

import errno
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM

from domain.operation import ErrorCode, OperationFailedError
from domain.session import LoraConfig
from models.catalog import Catalog
from testing.tiny_model import TOKENIZER_SIZE, make_tiny_model, reconfigured
from tests.engine.calls import failure_of
from tests.engine.conftest import StartEngine
from workers.engine.loading import model_files
from workers.engine.loading.base_model import BaseModel
from workers.engine.loading.description import describe
from workers.engine.loading.model_files import load_end_tokens, load_model

CPU = torch.device("cpu")
Spoil = Callable[[Path], object]


def with_config(**fields: Any) -> Spoil:
    return lambda directory: reconfigured(directory, **fields)


def written(file: str, text: str) -> Spoil:
    return lambda directory: (directory / file).write_text(text)


def without(*names: str) -> Spoil:
    def spoil(directory: Path) -> None:
        file = directory / "model.safetensors"
        save_file({name: tensor for name, tensor in load_file(file).items() if name not in names}, file)

    return spoil


FAULTS: dict[str, tuple[Spoil, str]] = {
    "a layer too many in the config": (
        with_config(num_hidden_layers=3), r"lack tensors.*: model.layers.2.input_layernorm.weight, .* \(9 in all\)",
    ),
    "a layer too few": (
        with_config(num_hidden_layers=1), r"no place for: model.layers.1.input_layernorm.weight, .* \(9 in all\)",
    ),
    "a missing tensor": (without("model.norm.weight"), r"lack tensors.*: model.norm.weight \(1 in all\)"),
    "a missing head": (without("lm_head.weight"), r"lack tensors.*: lm_head.weight \(1 in all\)"),
    "another inner size": (
        with_config(intermediate_size=65),
        r"other shapes.*: model.layers.0.mlp.down_proj.weight \[32, 64\] for \[32, 65\]",
    ),
    "another vocabulary": (with_config(vocab_size=TOKENIZER_SIZE + 1), "other shapes.*model.embed_tokens.weight"),
    "a size that no memory holds": (with_config(intermediate_size=10**14), "more than safetensors files of"),
    "an activation that is not known": (with_config(hidden_act="nope"), "that transformers can make: KeyError 'nope'"),
    "no heads": (with_config(num_attention_heads=0), "config.json cannot be used: ZeroDivisionError"),
    "a size in words": (with_config(hidden_size="32"), "config.json cannot be used: .*'hidden_size'"),
    "a type that is not known": (with_config(model_type="nope"), "config.json cannot be used: .*`nope`"),
    "no type": (with_config(model_type=None), "config.json cannot be used: .*model_type"),
    "remote code": (
        with_config(model_type="nope", auto_map={"AutoConfig": "x.Y"}), "remote code.*never run here",
    ),
    "a model of another kind": (with_config(model_type="vit"), "model_type 'vit', which is no causal language model"),
    "weights that are none": (written("model.safetensors", "nothing" * 9999), "weights cannot be loaded: Safetensor"),
    "no weights": (lambda directory: (directory / "model.safetensors").unlink(), "than safetensors files of 0 bytes"),
    "an end token in words": (
        written("generation_config.json", '{"eos_token_id": "</s>"}'), "eos_token_id is '</s>', which is no token id",
    ),
    "a broken generation config": (written("generation_config.json", "["), "generation_config.json cannot be used"),
}  # fmt: skip


@pytest.mark.parametrize(("spoil", "sentence"), FAULTS.values(), ids=FAULTS)
def test_a_directory_that_is_not_the_whole_model_is_refused_and_the_engine_goes_on(
    tmp_path: Path, tiny: Path, start_engine: StartEngine, spoil: Spoil, sentence: str
) -> None:
    directory = make_tiny_model(tmp_path / "model")
    spoil(directory)
    engine = start_engine()
    refused = failure_of(engine.create_adapter("s", directory, LoraConfig(), 0))
    assert refused.code is ErrorCode.INVALID_INPUT
    assert re.search(sentence, refused.message)
    assert str(tmp_path) not in refused.message
    engine.create_adapter("s", tiny, LoraConfig(), 0).result()


def test_a_tied_head_that_is_not_in_the_files_is_no_missing_tensor(tmp_path: Path) -> None:
    directory = make_tiny_model(tmp_path, tied=True)
    assert "lm_head.weight" not in load_file(directory / "model.safetensors")
    model = load_model(directory, CPU, torch.float32)
    assert torch.equal(model.lm_head.weight, load_file(directory / "model.safetensors")["model.embed_tokens.weight"])


def test_buffers_of_old_files_are_no_unexpected_tensors(tmp_path: Path) -> None:
    directory = make_tiny_model(tmp_path)
    tensors = load_file(directory / "model.safetensors")
    tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = torch.ones(4)
    save_file(tensors, directory / "model.safetensors")
    load_model(directory, CPU, torch.float32)


def test_a_model_that_is_larger_than_the_memory_left_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = make_tiny_model(tmp_path)
    size = 4 * sum(tensor.numel() for tensor in load_file(directory / "model.safetensors").values())
    monkeypatch.setattr(model_files, "free_bytes", lambda _: size)
    with pytest.raises(OperationFailedError, match=f"{size} free") as refused:
        # The buffer of the rotary angles is what is too much.
        load_model(directory, CPU, torch.float32)
    assert refused.value.error.code is ErrorCode.RESOURCE_EXHAUSTED
    load_model(directory, CPU, torch.bfloat16)


@pytest.mark.parametrize(
    "fault",
    [
        OSError(errno.EMFILE, "Too many open files"),
        OSError(errno.ENOSPC, "No space left on device"),
        torch.AcceleratorError("an illegal memory access was encountered"),
        RuntimeError("CUDA error: uncorrectable ECC error encountered"),
        RuntimeError("cuBLAS error: CUBLAS_STATUS_NOT_INITIALIZED"),
        RuntimeError("cuDNN error: CUDNN_STATUS_EXECUTION_FAILED"),
        RuntimeError("can't start new thread"),
    ],
    ids=str,
)
@pytest.mark.parametrize(("owner", "step"), [(AutoModelForCausalLM, "from_pretrained"), (BaseModel, "_check_passes")])
def test_a_fault_of_the_machine_is_no_refusal_of_the_model(
    tmp_path: Path, start_engine: StartEngine, monkeypatch: pytest.MonkeyPatch, fault: Exception, owner: type, step: str
) -> None:
    directory, engine = make_tiny_model(tmp_path), start_engine()

    def exhausted(*_: object, **__: object) -> None:
        raise fault

    with monkeypatch.context() as patch:
        patch.setattr(owner, step, exhausted)
        assert engine.create_adapter("s", directory, LoraConfig(), 0).exception() is fault
    engine.create_adapter("s", directory, LoraConfig(), 0).result()


def test_what_a_config_leaves_out_is_what_transformers_has_for_it(tmp_path: Path) -> None:
    make_tiny_model(tmp_path / "llama")
    reconfigured(tmp_path / "llama", max_position_embeddings=None, num_key_value_heads=None)
    make_tiny_model(tmp_path / "gptj", family="gptj", rotary_dim=8, n_layer=2, n_embd=32, n_head=4, n_inner=None)
    reconfigured(tmp_path / "gptj", n_positions=None)
    cards = {card.name: card for card in Catalog([tmp_path], describe).cards()}
    assert cards["llama"].context_length == AutoConfig.for_model("llama").max_position_embeddings == 2048
    assert cards["gptj"].context_length == AutoConfig.for_model("gptj").n_positions == 2048
    # Llama has then as many keys as queries: 32 + 32 for each of q, k, v, o; 32 + 64 for the three of the MLP.
    assert cards["llama"].adapter_width == 2 * (4 * 64 + 3 * 96)


def test_end_tokens_are_those_that_any_of_the_files_name(tmp_path: Path) -> None:
    directory = make_tiny_model(tmp_path, eos=(5, 6))
    config = AutoConfig.from_pretrained(directory)
    assert load_end_tokens(directory, config, None) == {5, 6, config.eos_token_id}
