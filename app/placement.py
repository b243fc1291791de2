"""Where a new session goes: which base model is meant, and which live worker takes it."""

from app.errors import UnavailableError
from app.state import state
from contract.model import ModelCard
from contract.session import SessionSpec
from models.catalog import UnknownModelError
from schemas.problems import refusal, shorten

MOST_REASON_CHARACTERS = 200
NO_WORKER = "no worker is alive just now; retry"


def served_models() -> list[ModelCard]:
    """The models of all live workers, by name."""
    cards = {card.name: card for worker in state().store.workers.live() for card in worker.models}
    return [cards[name] for name in sorted(cards)]


def find_model(name: str) -> ModelCard:
    """A model that a live worker serves, or one of the hub.

    Raises ValidationError for any other name, UnavailableError when no worker is alive to ask.
    """
    served = served_models()
    if not served:
        raise UnavailableError(NO_WORKER)
    for card in served:
        if card.name == name:
            return card
    try:
        return state().hub_card(name)
    except UnknownModelError as error:
        raise refusal("base_model", shorten(str(error), MOST_REASON_CHARACTERS)) from error


def place(spec: SessionSpec) -> str:
    """The id of the worker for a new session. Raises UnavailableError when none is alive."""
    worker_id = state().store.workers.place(spec)
    if worker_id is None:
        raise UnavailableError(NO_WORKER)
    return worker_id
