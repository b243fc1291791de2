"""A model's tokenizer: what stop strings need, and nothing else does."""

from pathlib import Path
from typing import Any

from transformers import AutoTokenizer

from domain.model import NO_TOKENIZER, TOKENIZER_FILES
from workers.engine.failures import refusing

NO_TEXT = "its files hold no token that has a text"


def load_tokenizer(directory: Path) -> tuple[Any | None, str]:
    """The tokenizer, or why there is none that can be used: a model is served by token ids without one."""
    if not any((directory / name).is_file() for name in TOKENIZER_FILES):
        return None, NO_TOKENIZER
    try:
        with refusing("the tokenizer cannot be loaded", directory):
            tokenizer = AutoTokenizer.from_pretrained(directory, local_files_only=True, trust_remote_code=False)
            # Transformers makes an empty one where it finds the class, but not the vocabulary.
            has_text = bool(tokenizer.decode(list(range(len(tokenizer))), skip_special_tokens=True))
    except ValueError as error:
        return None, str(error)
    return (tokenizer, "") if has_text else (None, f"the tokenizer cannot be used: {NO_TEXT}")
