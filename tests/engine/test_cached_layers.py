"""All layers in one call give the bits of the layers one by one, which are those of training."""

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from domain.session import LoraConfig
from testing.tiny_model import make_tiny_model
from tests.engine.exactness import DTYPES
from workers.engine.adapters.adapter import Adapter
from workers.engine.adapters.rows import AdapterRows
from workers.engine.backends.attention_layer import whole
from workers.engine.backends.kv_cache import KvCache, Span
from workers.engine.decoder.forward_pass import ForwardPass
from workers.engine.decoder.llama import Llama
from workers.engine.loading.base_model import BaseModel

CPU = torch.device("cpu")
FAMILIES: dict[str, dict[str, Any]] = {
    "llama": {"head_dim": 16},
    "mistral": {"head_dim": 16, "sliding_window": 23, "num_key_value_heads": 1},
    "qwen2": {"hidden_size": 64, "tied": True, "num_key_value_heads": 4},
    "qwen3": {"head_dim": 32},
}
LENGTHS, RANKS = [7, 90, 33, 12], [1, None, 5, 33]


def uneven_model(directory: Path, family: str, dtype: torch.dtype) -> BaseModel:
    """Whose norms are not all ones and whose biases are not zeros, as they are at first."""
    weights = load_file(make_tiny_model(directory, family=family, std=0.15, **FAMILIES[family]) / "model.safetensors")
    for name, weight in weights.items():
        if weight.ndim == 1:
            weights[name] = weight + torch.randn(len(weight)) * 0.3
    save_file(weights, directory / "model.safetensors", {"format": "pt"})
    return BaseModel(directory, CPU, dtype)


def uneven_adapter(base: BaseModel, rank: int) -> Adapter:
    adapter = Adapter(base.groups, LoraConfig(rank=rank, alpha=8, dropout=0.0), rank, CPU)
    with torch.no_grad():
        adapter.weights.normal_(std=0.1)
    return adapter


def rows_with(adapters: list[Adapter | None], lengths: list[int]) -> list[AdapterRows]:
    ends = torch.tensor(lengths).cumsum(0).tolist()
    parts = zip(adapters, lengths, ends, strict=True)
    return [AdapterRows(adapter, slice(end - length, end)) for adapter, length, end in parts if adapter]


def through_a_cache(base: BaseModel, adapters: list[Adapter | None], tokens: list[Tensor]) -> list[Tensor]:
    """Prompts at once, then their last two tokens by decode steps."""
    cache, rows = KvCache(), range(len(tokens))
    cache.reserve(len(tokens), max(map(len, tokens)))
    lengths = [len(part) - 2 for part in tokens]
    prompts = base.backend.span_attention(cache, [Span(row, 0, length) for row, length in enumerate(lengths)], CPU)
    prompt_tokens = torch.cat([part[:-2] for part in tokens])
    hidden = base.hidden(ForwardPass(prompt_tokens, prompts.positions_T, prompts, rows_with(adapters, lengths)))
    parts = [[part] for part in torch.split(hidden, lengths)]
    for step in (-2, -1):
        newest = torch.stack([part[step] for part in tokens])
        places = torch.tensor([len(part) + step for part in tokens])
        attention = base.backend.decode_attention(cache, list(rows), places)
        hidden = base.hidden(ForwardPass(newest, places, attention, rows_with(adapters, [1] * len(tokens))))
        for row in rows:
            parts[row].append(hidden[row : row + 1])
    return [torch.cat(part) for part in parts]


@pytest.mark.usefixtures("native")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("family", FAMILIES)
@torch.no_grad()
def test_one_call_for_all_layers_gives_the_bits_of_one_for_each_and_of_training(
    family: str, dtype: torch.dtype, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    base = uneven_model(tmp_path, family, dtype)
    adapters = [uneven_adapter(base, rank) if rank else None for rank in RANKS]
    tokens = [torch.randint(0, base.vocab_size, (length,)) for length in LENGTHS]
    at_once = through_a_cache(base, adapters, tokens)
    assert isinstance(base._stack, Llama) and base._stack._cached_layers
    monkeypatch.setattr(base._stack, "_cached_layers", None)
    one_by_one = through_a_cache(base, adapters, tokens)
    for adapter, part, many, single in zip(adapters, tokens, at_once, one_by_one, strict=True):
        alone = [AdapterRows(adapter, None)] if adapter else []
        attention = base.backend.attention(whole([len(part)]))
        in_training = ForwardPass(part, torch.arange(len(part)), attention, alone)
        assert torch.equal(many, single)
        assert torch.equal(many, base.hidden(in_training))
