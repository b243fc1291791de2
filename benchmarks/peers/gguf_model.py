"""A Llama's directory as the one file that llama.cpp reads, without a tokenizer: prompts are token ids."""

import json
from pathlib import Path
from typing import Any

import gguf
import torch
from safetensors.torch import load_file
from torch import Tensor

ARCHITECTURE = "llama"
TYPES = {
    "float32": (torch.float32, gguf.GGMLQuantizationType.F32),
    "bfloat16": (torch.bfloat16, gguf.GGMLQuantizationType.BF16),
}


def write(model: Path, dtype: str, file: Path) -> None:
    """Matrices in `dtype`, norms in fp32, as llama.cpp's own conversion has them."""
    config = json.loads((model / "config.json").read_text())
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config["num_hidden_layers"])
    writer = gguf.GGUFWriter(file, ARCHITECTURE)
    _describe(writer, config)
    for name, tensor in load_file(model / "model.safetensors").items():
        kept, kind = TYPES[dtype] if tensor.ndim > 1 else TYPES["float32"]
        data = _paired(name, tensor, config).to(kept).contiguous()
        target = names.get_name(name, try_suffixes=(".weight",))
        assert target, f"llama.cpp knows no {name}"
        writer.add_tensor(target, data.view(torch.uint8).numpy(), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _describe(writer: gguf.GGUFWriter, config: dict[str, Any]) -> None:
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(config["rope_theta"])
    writer.add_rope_dimension_count(config["hidden_size"] // config["num_attention_heads"])
    writer.add_vocab_size(config["vocab_size"])
    writer.add_tokenizer_model("none")


def _paired(name: str, tensor: Tensor, config: dict[str, Any]) -> Tensor:
    """Rows of q and k as llama.cpp rotates them: neighbours, where the reference turns the two halves of a head."""
    heads = {"q_proj": "num_attention_heads", "k_proj": "num_key_value_heads"}
    for part, count in heads.items():
        if part in name:
            return tensor.unflatten(0, (config[count], 2, -1)).transpose(1, 2).flatten(0, 2)
    return tensor
