"""Model folders as people have them: half downloaded, edited by hand, or saved without a part."""

import json
from pathlib import Path

from testing.tiny_model import make_tiny_model, reconfigured

POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:0f\nsize 144592\n"
SHARD = "model-00001-of-00002.safetensors"


def make_broken_models(folder: Path) -> None:
    (make_tiny_model(folder / "pointer") / "model.safetensors").write_text(POINTER)
    weights = make_tiny_model(folder / "cut") / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    shards = make_tiny_model(folder / "shards")
    (shards / "model.safetensors").rename(shards / SHARD)
    index = {"metadata": {}, "weight_map": {"lm_head.weight": SHARD, "model.norm.weight": SHARD.replace("1-", "2-")}}
    (shards / "model.safetensors.index.json").write_text(json.dumps(index))
    reconfigured(make_tiny_model(folder / "gptq"), quantization_config={"quant_method": "gptq", "bits": 4})
    reconfigured(make_tiny_model(folder / "vocabulary"), vocab_size=267)
    (make_tiny_model(folder / "deep") / "config.json").write_text('{"a":' * 100_000 + "1" + "}" * 100_000)
    # Only loading shows what is wrong with these.
    reconfigured(make_tiny_model(folder / "lacking"), num_hidden_layers=3)
    # Served all the same.
    reconfigured(make_tiny_model(folder / "short"), max_position_embeddings=None)
    (make_tiny_model(folder / "wordless") / "tokenizer.json").write_text("{}")
    remote = make_tiny_model(folder / "remote-words")
    (remote / "tokenizer.json").unlink()
    own = {"tokenizer_class": "Own", "auto_map": {"AutoTokenizer": ["own.Own", None]}}
    (remote / "tokenizer_config.json").write_text(json.dumps(own))
