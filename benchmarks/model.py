"""The models that are measured: the bundled one, or a random one where nothing can be loaded.

Neither has end tokens, so that a completion is as long as its workload says and every engine samples as many tokens.
"""

import json
from pathlib import Path
from random import Random

from models import bundled

ROOT = Path(__file__).resolve().parent.parent
BUNDLED = ROOT / ".bench" / "smollm2"
RANDOM_CORPUS = 8192


def bundled_model(folder: Path = BUNDLED) -> Path:
    """The bundled model's weights and tokenizer beside a config without end tokens."""
    source = bundled.install()
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("model.safetensors", "tokenizer.json"):
        link = folder / name
        link.unlink(missing_ok=True)
        link.symlink_to(source / name)
    config = json.loads((source / "config.json").read_text())
    # transformers 4, which one peer brings, reads the rope's base from its old place.
    config |= {"eos_token_id": None, "rope_theta": config["rope_parameters"]["rope_theta"]}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast"}))
    return folder


def random_llama(
    folder: Path, device: str, *, layers: int, hidden: int, heads: int, kv_heads: int, vocab_size: int
) -> Path:
    """A Llama with random weights in bf16, drawn on the device, where a billion of them take a moment."""
    import torch
    from transformers import AutoModelForCausalLM, LlamaConfig

    config = LlamaConfig(
        vocab_size=vocab_size,
        hidden_size=hidden,
        intermediate_size=4 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        max_position_embeddings=8192,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=None,
    )
    torch.manual_seed(0)
    with torch.device(device):
        AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).save_pretrained(folder)
    return folder


def license_text(model: Path) -> list[int]:
    """The tokens of a text that lies in every checkout."""
    from tokenizers import Tokenizer

    tokens: list[int] = Tokenizer.from_file(str(model / "tokenizer.json")).encode((ROOT / "LICENSE").read_text()).ids
    return tokens


def random_text(vocab_size: int) -> list[int]:
    random = Random(0)
    return [random.randrange(vocab_size) for _ in range(RANDOM_CORPUS)]
