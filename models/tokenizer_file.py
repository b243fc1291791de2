"""Where a base model's tokenizer lies on this host, if it does; nothing is fetched for it."""

from pathlib import Path

from huggingface_hub import try_to_load_from_cache

from models.folders import model_folders

NAME = "tokenizer.json"


def tokenizer_file(base_model: str, models_dir: Path | None) -> Path | None:
    """`base_model` is the name of one that a session was made with, and so is known to be a name."""
    for folder in model_folders(models_dir):
        file = folder / base_model / NAME
        if file.is_file():
            return file
    cached = try_to_load_from_cache(base_model, NAME) if base_model.count("/") == 1 else None
    return Path(cached) if isinstance(cached, str) else None
