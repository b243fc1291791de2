"""What is exported, loaded by stock PEFT and stock transformers from the files alone."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import PeftModel, get_peft_model_state_dict
from safetensors.torch import load_file
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig

from domain.checkpoint import NewFile
from domain.operation import OperationFailedError
from domain.session import LoraConfig
from testing.tiny_model import PROJECTIONS, make_tiny_model
from tests.engine.calls import forward_backward, logprobs_of, optim_step, packed, random_sample
from tests.engine.conftest import StartEngine
from workers.engine.adapters.export import AdapterExport
from workers.engine.adapters.merged_export import MergedExport
from workers.engine.engine import Engine

SAMPLE = random_sample(3, 12)


def write(files: Iterable[NewFile], folder: Path) -> Path:
    """The files as a directory, each as large as it was said to be."""
    folder.mkdir()
    for file in files:
        written = b"".join(bytes(chunk) for chunk in file.chunks)
        assert len(written) == file.size, file.name
        (folder / file.name).write_bytes(written)
    return folder


def trained(engine: Engine, model: Path, lora: LoraConfig, steps: int = 2) -> AdapterExport:
    engine.create_adapter("s", model, lora, seed=5).result()
    for _ in range(steps):
        forward_backward(engine, packed([SAMPLE]))
        optim_step(engine, learning_rate=0.02)
    return engine.export_adapter("s").result()


def logprobs(model: Any) -> Tensor:
    tokens, targets = (torch.from_numpy(array).long() for array in SAMPLE)
    with torch.no_grad():
        logits_TV = model(input_ids=tokens[None]).logits[0].float()
    return logits_TV.log_softmax(-1).gather(-1, targets[:, None])[:, 0]


def session_logprobs(engine: Engine) -> Tensor:
    return torch.from_numpy(logprobs_of(engine, [SAMPLE])[0].copy())


def load_merged(folder: Path) -> Any:
    """The model, loaded from that folder without a key to spare."""
    model, found = AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True)
    assert not any(found[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys")), found
    return model


@pytest.mark.parametrize(("rank", "alpha"), [(4, 16), (64, 16), (8, 16)])
@pytest.mark.parametrize("steps", [0, 2])
def test_peft_loads_the_adapter_whole_and_gives_the_session_s_logprobs(
    engine: Engine, tiny: Path, tmp_path: Path, rank: int, alpha: int, steps: int
) -> None:
    lora = LoraConfig(rank=rank, alpha=alpha, dropout=0.25)
    adapter = trained(engine, tiny, lora, steps)
    folder = write(adapter.peft_files(lora, "org/tiny"), tmp_path / "adapter")
    base = AutoModelForCausalLM.from_pretrained(tiny)
    expected = logprobs(base)
    peft = PeftModel.from_pretrained(base, folder)
    stored, loaded = load_file(folder / "adapter_model.safetensors"), get_peft_model_state_dict(peft)
    assert stored.keys() == loaded.keys()
    assert all(torch.equal(stored[name], loaded[name]) for name in stored)
    assert all(bool(matrix.any()) == (steps > 0) for name, matrix in stored.items() if "lora_B" in name)
    torch.testing.assert_close(logprobs(peft), session_logprobs(engine), rtol=1e-4, atol=1e-4)
    assert steps or torch.equal(logprobs(peft), expected)


def test_the_adapter_s_config_says_what_was_asked_for(engine: Engine, tiny: Path) -> None:
    lora = LoraConfig(rank=4, alpha=24, dropout=0.25)
    files = {file.name: file for file in trained(engine, tiny, lora).peft_files(lora, "org/tiny")}
    config = json.loads(b"".join(files["adapter_config.json"].chunks))
    assert (config["r"], config["lora_alpha"], config["lora_dropout"]) == (4, 24, 0.25)
    assert config["target_modules"] == sorted(PROJECTIONS)
    assert (config["base_model_name_or_path"], config["task_type"]) == ("org/tiny", "CAUSAL_LM")


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize(("rank", "alpha"), [(4, 16), (64, 16), (8, 16)])
def test_transformers_loads_the_merged_model_and_it_is_the_session(
    engine: Engine, tmp_path: Path, tied: bool, rank: int, alpha: int
) -> None:
    base_dir = make_tiny_model(tmp_path / "base", tied=tied, eos=(1, 2))
    adapter = trained(engine, base_dir, LoraConfig(rank=rank, alpha=alpha, dropout=0.0))
    folder = write(MergedExport(base_dir, adapter, torch.float32).files(), tmp_path / "merged")
    model = load_merged(folder)
    torch.testing.assert_close(logprobs(model), session_logprobs(engine), rtol=1e-4, atol=1e-4)
    assert model.config.tie_word_embeddings is tied
    shares = model.get_output_embeddings().weight.data_ptr() == model.get_input_embeddings().weight.data_ptr()
    assert shares is tied
    assert GenerationConfig.from_pretrained(folder).eos_token_id == [1, 2]
    assert AutoTokenizer.from_pretrained(folder).chat_template == AutoTokenizer.from_pretrained(base_dir).chat_template


@pytest.mark.parametrize(("rank", "alpha", "scale"), [(4, 16, 4.0), (64, 16, 0.25), (8, 16, 2.0)])
def test_merged_minus_base_is_alpha_over_rank_times_b_a(
    engine: Engine, tiny: Path, tmp_path: Path, rank: int, alpha: int, scale: float
) -> None:
    adapter = trained(engine, tiny, LoraConfig(rank=rank, alpha=alpha))
    folder = write(MergedExport(tiny, adapter, torch.float32).files(), tmp_path / "merged")
    base, merged = (load_file(directory / "model.safetensors") for directory in (tiny, folder))
    assert base.keys() == merged.keys()
    for name, weight in base.items():
        pair = adapter.pairs.get(name.removesuffix(".weight"))
        if pair is None:
            assert torch.equal(merged[name], weight)
            continue
        assert (pair.A.shape, pair.B.shape) == ((rank, weight.shape[1]), (weight.shape[0], rank))
        expected = weight.double() + scale * (pair.B.double() @ pair.A.double())
        torch.testing.assert_close(merged[name].double(), expected, rtol=1e-6, atol=1e-6)


def test_a_bf16_base_is_merged_in_fp32_and_rounded_once(start_engine: StartEngine, tiny: Path, tmp_path: Path) -> None:
    engine = start_engine(dtype="bfloat16")
    adapter = trained(engine, tiny, LoraConfig(rank=4, alpha=8, dropout=0.0))
    folder = write(MergedExport(tiny, adapter, torch.bfloat16).files(), tmp_path / "merged")
    base, merged = (load_file(directory / "model.safetensors") for directory in (tiny, folder))
    for name, weight in base.items():
        pair = adapter.pairs.get(name.removesuffix(".weight"))
        whole = weight if pair is None else weight + 2.0 * (pair.B @ pair.A)
        assert torch.equal(merged[name], whole.bfloat16()), name
    model = load_merged(folder)
    assert model.dtype is torch.bfloat16
    torch.testing.assert_close(logprobs(model), session_logprobs(engine), rtol=0.1, atol=0.2)


def test_a_base_in_several_files_stays_in_several_files(engine: Engine, tiny: Path, tmp_path: Path) -> None:
    whole = AutoModelForCausalLM.from_pretrained(tiny)
    whole.save_pretrained(tmp_path / "base", max_shard_size="30KB")
    adapter = trained(engine, tmp_path / "base", LoraConfig(rank=4, alpha=8, dropout=0.0))
    folder = write(MergedExport(tmp_path / "base", adapter, torch.float32).files(), tmp_path / "merged")
    assert len(list(folder.glob("*.safetensors"))) > 2
    torch.testing.assert_close(logprobs(load_merged(folder)), session_logprobs(engine), rtol=1e-4, atol=1e-4)


def test_files_that_name_an_adapted_layer_otherwise_are_refused(engine: Engine, tiny: Path) -> None:
    adapter = trained(engine, tiny, LoraConfig(rank=4), steps=0)
    pairs = {name.replace("q_proj", "query"): pair for name, pair in adapter.pairs.items()}
    with pytest.raises(OperationFailedError, match=r"no tensor for model\.layers\.0\.self_attn\.query"):
        MergedExport(tiny, AdapterExport(pairs, adapter.scale, adapter.step), torch.float32)
