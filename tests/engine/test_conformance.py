"""A model is served as transformers computes it at every position, or refused with what differs."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.engine.backend import backend_of
from tests.model_table import make_family
from workers.engine.backends.attention_layer import AttentionLayer
from workers.engine.backends.native.attention import NativeDecodeAttention, NativeSpanAttention
from workers.engine.backends.torch.cached_attention import TorchDecodeAttention, TorchSpanAttention
from workers.engine.decoder import llama, transformers_stack
from workers.engine.decoder.forward_pass import ForwardPass
from workers.engine.decoder.head import Head
from workers.engine.decoder.llama import Llama
from workers.engine.loading import check_passes
from workers.engine.loading.base_model import BaseModel

CPU = torch.device("cpu")
DTYPES = [torch.float32, torch.bfloat16]
CACHED: dict[str, tuple[Any, Any]] = {
    "native": (NativeSpanAttention, NativeDecodeAttention),
    "torch": (TorchSpanAttention, TorchDecodeAttention),
}
SERVED: dict[str, dict[str, Any]] = {
    "gemma2": {"attn_logit_softcapping": 2.0, "final_logit_softcapping": 3.0, "query_pre_attn_scalar": 3},
    "gemma3_text": {"query_pre_attn_scalar": 3},
    "phi3": {"sliding_window": 100},
    "glm4": {},
    "granite": {
        "attention_multiplier": 0.2, "embedding_multiplier": 3.0, "residual_multiplier": 0.4, "logits_scaling": 7.0,
    },
    "olmo2": {},
    "qwen3_moe": {},
    "mixtral": {},
    "gpt_oss": {},
    "cohere": {"logit_scale": 0.3},
    "llama": {
        "rope_parameters": {
            "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
            "original_max_position_embeddings": 32, "rope_theta": 1e4,
        },
    },
}  # fmt: skip


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("family", SERVED)
def test_a_family_with_caps_scales_and_windows_is_served(family: str, dtype: torch.dtype, tmp_path: Path) -> None:
    BaseModel(make_family(family, tmp_path, **SERVED[family]), CPU, dtype)


def _with(change: dict[str, Any]) -> Callable[..., AttentionLayer]:
    return lambda *parts: replace(AttentionLayer(*parts), **change)


@pytest.mark.parametrize(
    ("family", "config", "fault", "dtype"),
    [
        ("phi3", {"sliding_window": 200}, {"window": None}, torch.float32),
        ("phi3", {"sliding_window": 200}, {"window": 199}, torch.float32),
        ("gemma2", {"attn_logit_softcapping": 50.0}, {"softcap": None}, torch.float32),
        ("granite", {"attention_multiplier": 0.3}, {"scale": 0.301}, torch.float32),
        ("gpt_oss", {}, {"sinks_H": None}, torch.float32),
        ("mistral", {"sliding_window": 200}, {"window": 199}, torch.float32),
        # What rounding in bf16 does not hide, at these sizes.
        ("phi3", {"sliding_window": 200}, {"window": 100}, torch.bfloat16),
        ("gemma2", SERVED["gemma2"], {"softcap": None}, torch.bfloat16),
        ("granite", {"attention_multiplier": 0.3}, {"scale": 0.6}, torch.bfloat16),
        ("gpt_oss", {}, {"sinks_H": None}, torch.bfloat16),
        ("mistral", {"sliding_window": 200}, {"window": 100}, torch.bfloat16),
    ],
)
def test_a_fault_in_attention_is_found_wherever_it_begins(
    family: str,
    config: dict[str, Any],
    fault: dict[str, Any],
    dtype: torch.dtype,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    directory = make_family(family, tmp_path, **config)
    for decoder in (transformers_stack, llama):
        monkeypatch.setattr(decoder, "AttentionLayer", _with(fault))
    with pytest.raises(ValueError, match=r"its hidden states are not those of transformers: off by \d"):
        BaseModel(directory, CPU, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_fault_of_scaled_angles_is_found_wherever_it_begins(
    dtype: torch.dtype, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = Llama._rotation
    monkeypatch.setattr(Llama, "_rotation", lambda self, like, positions: right(self, like, positions.clamp(max=200)))
    with pytest.raises(ValueError, match=r"from token 2\d\d of 256 on, its hidden states are not those of"):
        BaseModel(make_family("llama", tmp_path, **SERVED["llama"]), CPU, dtype)


@pytest.mark.parametrize(("dtype", "factor"), [(torch.float32, 1.001), (torch.bfloat16, 1.5)])
@pytest.mark.parametrize("decodes", [False, True])
def test_a_fault_of_the_cache_alone_is_found(
    decodes: bool, dtype: torch.dtype, factor: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = CACHED[backend_of(dtype).name][decodes]
    right = part.__call__
    monkeypatch.setattr(part, "__call__", lambda self, *parts: right(self, *parts) * factor)
    with pytest.raises(ValueError, match="From a cache of keys and values"):
        BaseModel(make_family("phi3", tmp_path), CPU, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_fault_of_a_pass_over_whole_sequences_is_found(
    dtype: torch.dtype, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check_passes, "whole", lambda lengths: [(0, [sum(lengths)])])
    with pytest.raises(ValueError, match="In a pass over whole sequences"):
        BaseModel(make_family("olmo2", tmp_path), CPU, dtype)


@pytest.mark.parametrize("family", ["mixtral", "llama"])
def test_a_fault_at_every_other_token_is_found_in_mixtures_too(
    family: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hidden(self: BaseModel, forward_pass: ForwardPass) -> Tensor:
        hidden_TD = right(self, forward_pass)
        hidden_TD[::2] *= 1.001
        return hidden_TD

    right = BaseModel.hidden
    monkeypatch.setattr(BaseModel, "hidden", hidden)
    with pytest.raises(ValueError, match=r"from token 0 of .*, its hidden states are not those of transformers"):
        BaseModel(make_family(family, tmp_path), CPU, torch.float32)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("family", "config"),
    [("granite", {"logits_scaling": 7.0}), ("gemma2", {"final_logit_softcapping": 3.0}), ("cohere", {})],
)
def test_a_head_without_its_scale_or_cap_is_found(
    family: str, config: dict[str, Any], dtype: torch.dtype, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Head, "product", lambda self, hidden: self.linear.product(hidden))
    with pytest.raises(ValueError, match="its logits are not those of transformers"):
        BaseModel(make_family(family, tmp_path, **config), CPU, dtype)


def test_of_a_multimodal_model_every_text_layer_is_adapted_and_nothing_else(tmp_path: Path) -> None:
    base = BaseModel(make_family("gemma3", tmp_path), CPU, torch.float32)
    names = [shape.name for group in base.groups for shape in group.shapes]
    assert len(names) == 14
    assert all(name.startswith("model.language_model.layers.") for name in names)
