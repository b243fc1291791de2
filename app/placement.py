"""Where a new session goes: which base model is meant, and which live workers may take it."""

from app.errors import UnavailableError
from app.state import state
from domain.model import ModelCard
from domain.session import SessionSpec
from models.hub import UnknownModelError
from schemas.problems import refusal, shorten
from store.workers import Worker, needed

MOST_REASON_CHARACTERS = 300
NO_WORKER = "no worker is alive just now; retry"


def served_models() -> list[ModelCard]:
    """The models of all live workers, by name."""
    return _models_of(state().store.workers.live())


def find_model(name: str) -> ModelCard:
    """A model that a worker serves, or one of the hub. A worker that is away has said what it serves.

    Raises ValidationError for any other name, UnavailableError when there is no worker that said so.
    """
    workers = state().store.workers.known()
    if not workers:
        raise UnavailableError(NO_WORKER)
    for card in _models_of(workers):
        if card.name == name:
            return card
    for worker in workers:
        if name in worker.announcement.refused:
            raise refusal("base_model", f"{name!r} is refused: {worker.announcement.refused[name]}")
    try:
        return state().hub.card(name)
    except UnknownModelError as error:
        raise refusal("base_model", shorten(str(error), MOST_REASON_CHARACTERS)) from error


def candidates(spec: SessionSpec) -> list[str]:
    """The ids of the workers for a new session, the best first. Raises UnavailableError when none is alive, and
    ValidationError for an adapter that none could hold if it held nothing else."""
    workers = state().store.workers
    found = workers.candidates(spec)
    if not found:
        raise UnavailableError(NO_WORKER)
    size, most = needed(spec.adapter_bytes), workers.most_memory(spec)
    if size > most:
        raise refusal(
            "lora_config.rank",
            f"an adapter of rank {spec.lora.rank} and the work on it take {size} bytes, and the largest worker of this "
            f"base model has {most:.0f} for them: ask for a smaller rank, or add a worker with more memory",
        )
    return found


def _models_of(workers: list[Worker]) -> list[ModelCard]:
    cards = {card.name: card for worker in workers for card in worker.models}
    return [cards[name] for name in sorted(cards)]
