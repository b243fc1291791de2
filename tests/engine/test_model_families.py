"""docs/models.md says of every family of transformers' causal language models what becomes of it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from peft import PeftModel, get_peft_model_state_dict
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

from domain.session import LoraConfig
from tests.engine.calls import logprobs_of
from tests.engine.conftest import StartEngine
from tests.engine.test_export import SAMPLE, load_merged, logprobs, trained, write
from tests.model_table import families, make_family, row_of, untried, written_rows
from tests.tiny_families import UNTRIED
from workers.engine.adapters.adapter import Adapter
from workers.engine.adapters.export import AdapterExport
from workers.engine.adapters.merged_export import MergedExport

WRITTEN = written_rows()
LORA = LoraConfig(rank=4, alpha=8, dropout=0.0)
WORTH_SERVING = (
    "gemma2", "gemma3_text", "gemma3", "phi3", "glm4", "granite", "olmo2", "qwen3_moe", "mixtral", "deepseek_v3",
)  # fmt: skip


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """More of them wait for each other over models this small."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("family", families())
def test_the_page_says_what_becomes_of_a_family_and_peft_loads_its_adapter(family: str, tmp_path: Path) -> None:
    if family in UNTRIED:
        assert str(untried(family)) == WRITTEN[family]
        return
    row, base = row_of(family, make_family(family, tmp_path / "base"))
    assert str(row) == WRITTEN.get(family), "write docs/models.md again: python -m tests.model_table"
    if base is not None:
        export = AdapterExport.of(Adapter(base.groups, LORA, 0, torch.device("cpu")), base.adapted.targets)
        check_peft(tmp_path / "base", write(export.peft_files(LORA, "org/tiny"), tmp_path / "adapter"))


def check_peft(directory: Path, folder: Path) -> PeftModel:
    """The model with that adapter, loaded whole by stock PEFT."""
    peft = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(directory).eval(), folder)
    stored, loaded = load_file(folder / "adapter_model.safetensors"), get_peft_model_state_dict(peft)
    assert stored.keys() == loaded.keys()
    assert all(torch.equal(stored[name], loaded[name]) for name in stored)
    return peft


def test_the_page_has_no_other_families() -> None:
    assert set(WRITTEN) - {"model_type"} == set(families())


@pytest.mark.parametrize("family", WORTH_SERVING)
def test_a_family_s_adapter_loads_in_stock_peft_and_its_merged_model_in_plain_transformers(
    family: str, tmp_path: Path, start_engine: StartEngine
) -> None:
    directory = make_family(family, tmp_path / "base")
    engine = start_engine()
    adapter = trained(engine, directory, LORA)
    ours = torch.from_numpy(logprobs_of(engine, [SAMPLE])[0].copy())
    folder = write(adapter.peft_files(LORA, "org/tiny"), tmp_path / "adapter")
    peft = check_peft(directory, folder)
    torch.testing.assert_close(logprobs(peft), ours, rtol=1e-3, atol=1e-3)
    merged = write(MergedExport(directory, adapter, torch.float32).files(), tmp_path / "merged")
    torch.testing.assert_close(logprobs(load_merged(merged).eval()), ours, rtol=1e-3, atol=1e-3)
