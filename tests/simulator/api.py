"""An API process: what its routes ask of the store, one call after the other, without HTTP around it."""

from collections.abc import Callable
from hashlib import sha256

import msgspec

from domain.api_key import ANONYMOUS
from domain.model import ModelCard
from domain.operation import Operation, OperationKind, OperationStatus
from domain.session import LoraConfig, SessionSpec, SessionStatus
from store.errors import NoRoomError
from store.idempotency import IdempotencyKey
from store.store import Store
from tests.simulator.faults import Target
from tests.simulator.requests import value_of

CARD = ModelCard(name="org/tiny", vocab_size=64, context_length=32, adapter_width=10)
ENDS = (SessionStatus.STOPPED, SessionStatus.ERROR, SessionStatus.EXPIRED)


class GoneError(BaseException):
    """The connection to the API broke: its process was killed. No code of the product catches it."""


class Api(Target):
    store: Store

    def kill(self) -> None:
        """Another process stands in its place at once."""
        raise GoneError

    def create_session(self, key: str, seed: int, publishes: bool, origin: str | None) -> str:
        spec = SessionSpec(base_model=CARD, lora=LoraConfig(), seed=seed, publishes=publishes, checkpoint_id=origin)
        checkpoint = self.store.checkpoints.get(origin, spec.owner) if origin else None
        once = _once("sessions", key)

        def create() -> str:
            workers = self.store.workers.candidates(spec)
            if not workers:
                raise NoRoomError
            return self.store.sessions.create(spec, workers, once, checkpoint).id

        return self._answered(once, None, create)

    def accept(self, session_id: str, kind: OperationKind, request: msgspec.Struct, key: str) -> str:
        once = _once(session_id, key)

        def accept() -> str:
            self.store.sessions.get(session_id)
            return self.store.operations.accept(session_id, kind, request, once).id

        return self._answered(once, session_id, accept)

    def read(self, session_id: str, operation_id: str) -> tuple[Operation, int | None]:
        """With its number, once it has completed."""
        self.store.sessions.get(session_id)
        operation = self.store.operations.get(session_id, operation_id)
        is_completed = operation.status is OperationStatus.COMPLETED
        return operation, value_of(operation, self.store.operations.answer) if is_completed else None

    def cancel(self, session_id: str, operation_id: str) -> Operation:
        self.store.sessions.get(session_id)
        return self.store.operations.cancel(session_id, operation_id)

    def stop(self, session_id: str) -> None:
        self.store.sessions.get(session_id)
        self.store.sessions.stop(session_id)

    def has_ended(self, session_id: str) -> bool:
        return self.store.sessions.get(session_id).status in ENDS

    def delete_checkpoint(self, checkpoint_id: str) -> None:
        self.store.checkpoints.delete(checkpoint_id, ANONYMOUS)

    def _answered(self, once: IdempotencyKey, session_id: str | None, act: Callable[[], str]) -> str:
        """As app/idempotency.py has it around every POST."""
        first = self.store.idempotency.recall(once)
        if first is not None:
            return first.decode()
        return self.store.idempotency.remember(once, session_id, act().encode()).decode()


def _once(scope: str, key: str) -> IdempotencyKey:
    return IdempotencyKey(scope, key, sha256(key.encode()).digest())
