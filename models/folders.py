"""Where base models lie on a host."""

from pathlib import Path

from models import bundled


def model_folders(models_dir: Path | None) -> list[Path]:
    """The user's models before the bundled one, which an image may have been built without."""
    bundle = [bundled.DIRECTORY] if bundled.DIRECTORY.is_dir() else []
    return ([models_dir] if models_dir else []) + bundle
