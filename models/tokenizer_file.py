"""Where a base model's tokenizer lies on this host, and what is wrong with it; nothing is fetched for it."""

from pathlib import Path

import msgspec
from huggingface_hub import try_to_load_from_cache

from domain.model import NO_TOKENIZER, TOKENIZER_FILES
from models.folders import model_folders
from models.json_file import POINTER, refuse_pointer

NAME = "tokenizer.json"


class _Serialized(msgspec.Struct):
    """What there must be in a tokenizer.json: of the rest, its own library judges."""

    model: msgspec.Raw


def tokenizer_file(base_model: str, models_dir: Path | None) -> Path | None:
    """`base_model` is the name of one that a session was made with, and so is known to be a name."""
    for folder in model_folders(models_dir):
        file = folder / base_model / NAME
        if file.is_file():
            return file
    cached = try_to_load_from_cache(base_model, NAME) if base_model.count("/") == 1 else None
    return Path(cached) if isinstance(cached, str) else None


def tokenizer_fault(directory: Path) -> str:
    """Why text cannot be made of the model's tokens, as far as its files tell; empty where they do not."""
    if not any((directory / name).is_file() for name in TOKENIZER_FILES):
        return NO_TOKENIZER
    file = directory / NAME
    if not file.is_file():
        return ""
    try:
        text = file.read_bytes()
        refuse_pointer(NAME, text[: len(POINTER)])
        msgspec.json.decode(text, type=_Serialized)
    except OSError as error:
        return f"{NAME} cannot be read: {error.strerror}"
    except (msgspec.MsgspecError, RecursionError) as error:
        return f"{NAME} holds no tokenizer: {error}"
    except ValueError as error:
        return str(error)
    return ""
