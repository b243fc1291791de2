"""Small random models in complete Hugging Face directories, made in a fraction of a second."""

import json
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from transformers import AutoConfig, AutoModelForCausalLM, GenerationConfig, PreTrainedTokenizerFast

# What is adapted of a Llama's layer.
PROJECTIONS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
SPECIALS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
MERGES = (("t", "h"), ("th", "e"), ("i", "n"), ("a", "n"), ("Ġ", "the"), ("E", "N"), ("EN", "D"))
TOKENIZER_SIZE = 256 + len(MERGES) + len(SPECIALS)
CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def make_tiny_model(
    directory: Path,
    *,
    vocab_size: int = TOKENIZER_SIZE,
    layers: int = 2,
    family: str = "llama",
    zero_head: bool = False,
    tied: bool = False,
    eos: tuple[int, ...] | None = None,
    seed: int = 0,
    std: float = 0.3,
    **config: Any,
) -> Path:
    """Writes config, weights, generation config and a byte-level tokenizer with a chat template.

    `std` is that of the weights, large enough for uneven logits; `zero_head` makes all logits 0. `eos` are the
    end tokens of the generation config (the tokenizer's alone when None). More keywords go to the model's config.
    """
    tokenizer = tiny_tokenizer()
    settings = {
        "vocab_size": vocab_size,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": layers,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 512,
        "tie_word_embeddings": tied,
        "bos_token_id": None,
        "eos_token_id": tokenizer.eos_token_id,
        "initializer_range": std,
    }
    torch.manual_seed(seed)
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(family, **(settings | config)))
    if zero_head:
        model.get_output_embeddings().weight.data.zero_()
    model.save_pretrained(directory)
    tokenizer.save_pretrained(directory)
    GenerationConfig(eos_token_id=list(eos) if eos else tokenizer.eos_token_id).save_pretrained(directory)
    return directory


def reconfigured(directory: Path, **fields: Any) -> Path:
    """Changes what its config.json states; a field that is None is left out."""
    file = directory / "config.json"
    changed = json.loads(file.read_text()) | fields
    file.write_text(json.dumps({name: value for name, value in changed.items() if value is not None}))
    return directory


def tiny_tokenizer() -> PreTrainedTokenizerFast:
    pieces = [*sorted(ByteLevel.alphabet()), *("".join(merge) for merge in MERGES)]
    tokenizer = Tokenizer(BPE(vocab={piece: index for index, piece in enumerate(pieces)}, merges=list(MERGES)))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(list(SPECIALS))
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<|endoftext|>", pad_token="<|endoftext|>", chat_template=CHAT_TEMPLATE
    )
