"""What a trial runs against: a stack with two workers, quick to notice what is lost."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from stack.running import running_stack
from stack.stack import Stack

SETTINGS = {
    "CELERITY_DEVICE": "cpu",
    "CELERITY_TORCH_THREADS": "1",
    "CELERITY_MICRO_BATCH_TOKENS": "64",
    "CELERITY_HEARTBEAT_INTERVAL": "0.3",
    "CELERITY_HEARTBEAT_TIMEOUT": "2.5",
    "CELERITY_REDISPATCH_AFTER": "1",
    "CELERITY_SNAPSHOT_STEPS": "3",
    # Random kills may hit one operation often; only one that always kills its worker should end for that.
    "CELERITY_MOST_ATTEMPTS": "50",
}


@contextmanager
def deployed(folder: Path) -> Iterator[Stack]:
    """Ready, on the models of `folder`/models."""
    with running_stack(folder / "data", folder / "models", SETTINGS, workers=2) as stack:
        yield stack
