"""The checkpoint that a body names."""

from app.auth import caller
from app.state import state
from domain.checkpoint import Checkpoint
from schemas.problems import refusal
from store.errors import NotFoundError


def checkpoint_of(checkpoint_id: str, field: str) -> Checkpoint:
    """Raises ValidationError when the caller has none of this id."""
    try:
        return state().store.checkpoints.get(checkpoint_id, caller())
    except NotFoundError as error:
        raise refusal(field, "unknown checkpoint") from error
