"""Which sessions' adapters are in this process, and how one comes here: snapshot, then replay."""

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from operator import is_
from pathlib import Path
from threading import Lock
from weakref import WeakValueDictionary

from domain.codec import decode
from domain.kinds import KINDS
from domain.operation import ErrorCode, OperationFailedError, OperationKind
from models.catalog import Catalog, RefusedModelError
from store.claims import Claim
from store.snapshots import Replayed
from store.store import Store
from store.workers import needed
from workers.background import in_background
from workers.changes import change
from workers.deadline import Deadline, RestoreDeadline
from workers.engine.adapters.state import AdapterState
from workers.engine.engine import Engine
from workers.engine.failures import ModelRefusedError
from workers.retry import OperationRetry

log = logging.getLogger(__name__)

POLL_SECONDS = 0.05


@dataclass
class LoadedSession:
    """An adapter in memory: of which epoch of its session (None while it is being brought there), how large, the fence
    of the operation that changed it last, or may have, and how many operations use it just now."""

    size: int
    epoch: int | None = None
    last_change: str = ""
    users: int = 0


class Residency:
    """GPU memory is a cache of the store. An adapter is good for one epoch of its session: after another worker has
    held the session it is stale. And for one last change: when Redis has come back without its last writes it is ahead.

    An adapter is admitted under one lock, held by the one that waits for room: those that come after it wait too, so
    that small adapters that are always in use cannot keep a large one waiting.
    """

    def __init__(
        self, store: Store, engine: Engine, catalog: Catalog, retry: OperationRetry, most: int, reserved_bytes: int,
        free_bytes: Callable[[], int], create_timeout: float,
    ) -> None:  # fmt: skip
        """`most` adapters stay in memory, and no more than leave `reserved_bytes` of it free; beyond that, those that
        nothing has used for longest are parked. `free_bytes` measures. An adapter that is brought back may take
        `create_timeout` seconds until what is replayed begins."""
        self._store, self._engine, self._catalog, self._retry = store, engine, catalog, retry
        self._most = most
        self._reserved_bytes, self._free_bytes = reserved_bytes, free_bytes
        self._create_timeout = create_timeout
        self._loaded: OrderedDict[str, LoadedSession] = OrderedDict()
        # Of the sessions that somebody is busy with: the others leave nothing behind.
        self._locks: WeakValueDictionary[str, Lock] = WeakValueDictionary()
        self._lock_of_locks = threading.Lock()
        self._admission = threading.Lock()

    @property
    def count(self) -> int:
        """Adapters in memory."""
        return len(self._loaded)

    @property
    def size(self) -> int:
        """Bytes of the adapters in memory, by count."""
        return sum(session.size for session in list(self._loaded.values()))

    @contextmanager
    def hold(self, claim: Claim) -> Iterator[Deadline]:
        """Brings the claimed operation's session into memory, as it was before that operation, and keeps it there.

        The operation's time begins then; it begins at once, and waiting here counts, when the session is in memory
        already. To bring it there has a limit of its own, but for the replay: every piece of that has come to its end
        before, and one that was cut would begin again with the next operation.

        Raises OperationFailedError when its base model cannot be loaded, its adapter does not fit, that takes too long,
        or the session has been elsewhere and come back since the operation was claimed, and ObjectsAwayError.
        """
        operation_deadline = Deadline(claim.kind, claim.timeout_seconds)
        is_creation = claim.kind is OperationKind.CREATE_SESSION
        restore_deadline = operation_deadline if is_creation else RestoreDeadline(self._create_timeout)
        lock = self._lock(claim.session_id)
        is_loaded = _is_good_for(claim, self._loaded.get(claim.session_id))
        with (operation_deadline if is_loaded else restore_deadline).holding(self._admission):
            # Waited for without the session's lock: whoever leaves the session, or parks it, needs that.
            pass
        # Whoever restores it meanwhile keeps to that limit, and may then replay for as long as it takes.
        with operation_deadline.holding(lock) if is_loaded else lock:
            session = self._loaded.get(claim.session_id)
            if session is None or not _is_good_for(claim, session):
                _refuse_if_late(claim, session)
                session, is_loaded = self._restore(claim, restore_deadline), False
            if KINDS[claim.kind].changes_the_adapter:
                session.last_change = claim.fence
            self._loaded.move_to_end(claim.session_id)
            self._count_user(session, 1)
        self._park_surplus()
        deadline = operation_deadline if is_loaded else Deadline(claim.kind, claim.timeout_seconds)
        try:
            yield deadline
        except OperationFailedError as failed:
            deadline.committed |= KINDS[claim.kind].changed_the_adapter(failed.error)
            raise
        finally:
            if session.last_change == claim.fence and not deadline.committed:
                session.last_change = claim.last_change
            self._count_user(session, -1)

    def undo(self, claim: Claim) -> None:
        """Called before an operation ends FAILED. If the engine has committed changes for it, or may have, the adapter
        goes, and the next operation restores it as it was before this one."""
        session = self._loaded.get(claim.session_id)
        if session and session.last_change == claim.fence:
            log.warning("operation %s of session %s is undone", claim.operation_id, claim.session_id)
            self.release(claim.session_id)

    def release(self, session_id: str) -> None:
        """Frees the session's adapter, and returns when it is gone; releasing it twice is releasing it once."""
        lock = self._lock(session_id)
        lock.acquire()
        self._drop(session_id, lock)
        with lock:
            pass

    def release_others(self, read_held: Callable[[], set[str]]) -> None:
        """Frees the adapters of sessions that are not this worker's any more; one whose lock is taken, the next time.
        A heartbeat waits neither for that nor for the engine. `read_held` asks which are."""
        # What comes here while the answer is on its way is not in it: only what was here before may go.
        before = list(self._loaded.items())
        held = read_held()
        for session_id, session in before:
            if session_id not in held:
                self._drop_if_free(session_id, partial(is_, session))

    def _lock(self, session_id: str) -> Lock:
        """The session's own: the same for all who have it at the same time."""
        with self._lock_of_locks:
            lock = self._locks.get(session_id)
            if lock is None:
                lock = self._locks[session_id] = threading.Lock()
            return lock

    def _count_user(self, session: LoadedSession, more: int) -> None:
        """Not under the session's lock: an operation that has ended does not wait for it."""
        with self._lock_of_locks:
            session.users += more

    def _drop(self, session_id: str, lock: Lock) -> None:
        """Has the session's adapter freed. The caller has taken the session's lock and waits for nothing: the lock is
        released when the adapter is gone."""

        def gone(_: object) -> None:
            self._loaded.pop(session_id, None)
            lock.release()

        self._engine.drop_adapter(session_id).add_done_callback(gone)

    def _drop_if_free(self, session_id: str, may_go: Callable[[LoadedSession], bool]) -> int:
        """The bytes that this frees: none when the session's lock is taken, or the adapter may not go."""
        lock = self._lock(session_id)
        if not lock.acquire(blocking=False):
            return 0
        session = self._loaded.get(session_id)
        if session is None or not may_go(session):
            lock.release()
            return 0
        self._drop(session_id, lock)
        return session.size

    def _park_surplus(self) -> None:
        for session_id in list(self._loaded)[: max(0, len(self._loaded) - self._most)]:
            self._park(session_id)

    def _park(self, session_id: str) -> int:
        """The bytes that this frees: none when the session is in use. A parked session needs nothing but to leave:
        its next operation restores it like any other."""
        freed = self._drop_if_free(session_id, lambda session: not session.users)
        if freed:
            log.info("session %s parked", session_id)
        return freed

    def _make_room(self, size: int, restore_deadline: Deadline) -> None:
        """Parks what is idle, and waits for what is not, until an adapter of this size fits.

        Raises OperationFailedError when it would not fit alone, or that takes too long.
        """
        while not self._park_until_free(needed(size) + self._reserved_bytes) and self._loaded:
            restore_deadline.check()
            time.sleep(POLL_SECONDS)
        free = self._free_bytes()
        if not self._loaded and free < needed(size):
            raise OperationFailedError(
                ErrorCode.RESOURCE_EXHAUSTED,
                f"The adapter and the work on it take {needed(size)} bytes, and its worker has {free} free. "
                "Ask for a smaller rank, or add a worker with more memory.",
            )

    def _park_until_free(self, wanted: int) -> bool:
        """Whether so much is free. What is parked counts by its size: the allocator may keep it for the next one."""
        free = self._free_bytes()
        for session_id in list(self._loaded):
            if free >= wanted:
                break
            free += self._park(session_id)
        return free >= wanted

    def _restore(self, claim: Claim, restore_deadline: Deadline) -> LoadedSession:
        if stale := self._loaded.get(claim.session_id):
            # Good for no operation any more, also when this one does not get as far as to drop it.
            stale.epoch = None
        directory = self._load_model(claim.spec.base_model.name, restore_deadline)
        with restore_deadline.paused():
            # As long as the store is away; that is no fault of the operation.
            kept = self._retry.until_available(
                claim, lambda: self._store.snapshots.load(claim.session_id), "restoring the session"
            )
        state = AdapterState.from_bytes(kept.snapshot) if kept.snapshot else None
        if state and kept.is_checkpoint and not claim.spec.load_optimizer:
            state = state.weights_only()
        restore_deadline.answer(self._engine.drop_adapter(claim.session_id))
        self._loaded.pop(claim.session_id, None)
        session = LoadedSession(claim.spec.adapter_bytes)
        with restore_deadline.holding(self._admission):
            self._make_room(session.size, restore_deadline)
            self._create(claim, state, directory, restore_deadline)
            self._loaded[claim.session_id] = session
        for operation in kept.replayed:
            self._replay(claim, operation)
        session.epoch, session.last_change = claim.epoch, kept.last_change
        if state or kept.replayed:
            log.info("session %s restored, %d operations replayed", claim.session_id, len(kept.replayed))
        return session

    def _load_model(self, name: str, restore_deadline: Deadline) -> Path:
        """The directory of a base model that is in memory then. It may have to be fetched and loaded: that goes on when
        the time is up, for whoever asks next. Nobody waits for admission meanwhile."""
        with self._loading(name):
            directory = restore_deadline.answer(in_background(lambda: self._catalog.directory(name)))
            restore_deadline.answer(self._engine.load_model(directory))
            return directory

    def _create(self, claim: Claim, state: AdapterState | None, directory: Path, restore_deadline: Deadline) -> None:
        session_id, spec = claim.session_id, claim.spec
        with self._loading(spec.base_model.name):
            restore_deadline.answer(
                self._engine.create_adapter(
                    session_id, directory, spec.lora, spec.seed, state, publishes=spec.publishes
                )
            )

    @contextmanager
    def _loading(self, name: str) -> Iterator[None]:
        """Raises OperationFailedError; a model that is refused is announced as such from now on."""
        try:
            yield
        except ModelRefusedError as refused:
            self._catalog.refuse(name, str(refused))
            raise OperationFailedError(refused.error.code, str(RefusedModelError(name, str(refused)))) from refused
        except RefusedModelError as refused:
            raise OperationFailedError(ErrorCode.INVALID_INPUT, str(refused)) from refused
        except (ValueError, OSError) as error:
            message = f"the base model {name} could not be loaded: {error}"
            raise OperationFailedError(ErrorCode.INVALID_INPUT, message) from error

    def _replay(self, claim: Claim, operation: Replayed) -> None:
        request = decode(operation.request, KINDS[operation.kind].request)
        try:
            change(self._engine, operation.kind, claim.session_id, request, claim.spec.seed, operation.seq).result()
        except OperationFailedError as failed:
            # It failed so the first time too, and has done again what it did then.
            if not KINDS[operation.kind].changed_the_adapter(failed.error):
                raise


def _is_good_for(claim: Claim, session: LoadedSession | None) -> bool:
    """Whether this is the session's adapter as it was before the operation."""
    return session is not None and session.epoch == claim.epoch and session.last_change == claim.last_change


def _refuse_if_late(claim: Claim, session: LoadedSession | None) -> None:
    """An adapter of a later epoch is another operation's; what this one answers is refused by the store anyway."""
    if session and session.epoch and session.epoch > claim.epoch:
        message = "the session has been with another worker since this operation began"
        raise OperationFailedError(ErrorCode.SESSION_NOT_ACTIVE, message)
