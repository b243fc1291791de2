"""Which sessions' adapters are in this process, and how one comes here: snapshot, then replay."""

import logging
import threading
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b

from contract.codec import decode
from contract.forward_backward import ForwardBackwardRequest
from contract.operation import ErrorCode, OperationFailedError, OperationKind
from contract.optim_step import OptimStepRequest
from models.catalog import Catalog
from store.claims import Claim
from store.snapshots import Replayed
from store.store import Store
from workers.engine.adapter_state import AdapterState
from workers.engine.engine import Engine
from workers.patience import persist

log = logging.getLogger(__name__)


class Residency:
    """GPU memory is a cache of the store. An adapter is good for one epoch of its session: after another worker
    has held the session, what is here is old."""

    def __init__(self, store: Store, engine: Engine, catalog: Catalog, most: int) -> None:
        """`most` adapters stay in memory; beyond that, those that nothing has used for longest are parked."""
        self._store, self._engine, self._catalog, self._most = store, engine, catalog, most
        self._epochs: OrderedDict[str, int] = OrderedDict()
        self._locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._users: Counter[str] = Counter()

    @property
    def count(self) -> int:
        """Adapters in memory."""
        return len(self._epochs)

    @contextmanager
    def hold(self, claim: Claim) -> Iterator[None]:
        """Brings the claimed operation's session into memory, as it was before that operation, and keeps it there.

        Raises OperationFailedError when its base model cannot be loaded.
        """
        with self._locks[claim.session_id]:
            if self._epochs.get(claim.session_id) != claim.epoch:
                self._restore(claim)
            self._epochs[claim.session_id] = claim.epoch
            self._epochs.move_to_end(claim.session_id)
            self._users[claim.session_id] += 1
        self._park_surplus()
        try:
            yield
        finally:
            with self._locks[claim.session_id]:
                self._users[claim.session_id] -= 1

    def release(self, session_id: str) -> None:
        """Frees the session's adapter; releasing it twice is releasing it once."""
        with self._locks[session_id]:
            self._engine.drop_adapter(session_id).result()
            self._epochs.pop(session_id, None)

    def release_all_but(self, held: set[str]) -> None:
        """Frees the adapters of sessions that are not this worker's any more."""
        for session_id in set(self._epochs) - held:
            self.release(session_id)

    def _park_surplus(self) -> None:
        """A parked session needs nothing but to leave: its next operation restores it like any other."""
        for session_id in list(self._epochs)[: max(0, len(self._epochs) - self._most)]:
            with self._locks[session_id]:
                if not self._users[session_id] and session_id in self._epochs:
                    del self._epochs[session_id]
                    self._engine.drop_adapter(session_id).result()
                    log.info("session %s parked", session_id)

    def _restore(self, claim: Claim) -> None:
        snapshots, what = self._store.snapshots, f"restoring session {claim.session_id}"
        snapshot, replayed = persist(lambda: snapshots.load(claim.session_id), what)
        state = AdapterState.from_bytes(snapshot) if snapshot else None
        if state and not claim.spec.load_optimizer and persist(lambda: snapshots.is_checkpoint(claim.session_id), what):
            state = state.weights_only()
        self._create(claim, state)
        for operation in replayed:
            self._replay(claim, operation)
        if state or replayed:
            log.info("session %s restored, %d operations replayed", claim.session_id, len(replayed))

    def _create(self, claim: Claim, state: AdapterState | None) -> None:
        name, spec = claim.spec.base_model.name, claim.spec
        try:
            directory = self._catalog.directory(name)
            self._engine.create_adapter(
                claim.session_id, directory, spec.lora, spec.seed, state, publishes=spec.publishes
            ).result()
        except (ValueError, OSError) as error:
            message = f"the base model {name} could not be loaded: {error}"
            raise OperationFailedError(ErrorCode.INVALID_INPUT, message) from error

    def _replay(self, claim: Claim, operation: Replayed) -> None:
        if operation.kind in (OperationKind.FORWARD_BACKWARD, OperationKind.CUSTOM_FORWARD_BACKWARD):
            request = decode(operation.request, ForwardBackwardRequest)
            seed = call_seed(claim.spec.seed, operation.seq)
            self._engine.forward_backward(claim.session_id, request, seed).result()
            return
        if operation.kind is OperationKind.WEIGHTS_SYNC:
            self._engine.weights_sync(claim.session_id).result()
            return
        try:
            self._engine.optim_step(claim.session_id, decode(operation.request, OptimStepRequest)).result()
        except OperationFailedError as failed:
            # It failed so the first time too, and what it did then, clearing the gradients, is done again.
            if failed.error.code is not ErrorCode.NON_FINITE:
                raise


def call_seed(session_seed: int, seq: int) -> int:
    """The seed of an operation's dropout masks: the same whenever the operation is run."""
    digest = blake2b(f"{session_seed}/{seq}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1
