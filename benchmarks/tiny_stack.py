"""A whole stack that serves a tiny model, in a folder that goes when it ends."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from stack.running import running_stack
from stack.stack import Stack
from testing.tiny_model import make_tiny_model


@contextmanager
def tiny_stack(settings: Mapping[str, str], *, workers: int = 1) -> Iterator[Stack]:
    """Ready to serve; the model is called "tiny"."""
    with tempfile.TemporaryDirectory(prefix="celerity-tiny-") as name:
        folder = Path(name)
        make_tiny_model(folder / "models" / "tiny")
        with running_stack(folder / "data", folder / "models", settings, workers=workers) as stack:
            yield stack
