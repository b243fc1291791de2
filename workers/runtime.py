"""What one worker process is: its identity, the store, the engine and the base models at hand."""

import os
import secrets
import socket
from hashlib import blake2b
from pathlib import Path

from contract.operation import ErrorCode, OperationFailedError
from models import bundled
from models.catalog import Catalog
from settings import Settings
from store.claims import Claim
from store.store import open_store
from store.workers import Announcement
from workers.engine.config import EngineConfig
from workers.engine.engine import Engine
from workers.patience import persist


class Runtime:
    """The worker's id names its queue and is new with each process, so that nothing meant for a
    process that died reaches the one that replaced it."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.host = socket.gethostname()
        self.worker_id = f"{self.host}-{os.getpid()}-{secrets.token_hex(4)}"
        self.store = open_store(settings)
        self.catalog = Catalog(model_folders(settings))
        config = engine_config(settings)
        self.device = str(config.torch_device)
        self.engine = Engine(config)
        self.held: set[str] = set()

    def start(self) -> None:
        """Waits for Redis. Raises ValueError when it may throw operations away."""
        policy = persist(self.store.eviction_policy, "starting")
        if policy != "noeviction":
            raise ValueError(
                f"Redis has the eviction policy {policy} and could drop accepted operations; "
                "set maxmemory-policy to noeviction"
            )
        self.engine.start()

    def close(self) -> None:
        """Ends what this process holds, now rather than when its heartbeat is missed."""
        self.engine.close()
        self.store.janitor.lose_worker(self.worker_id)

    def announcement(self) -> Announcement:
        return Announcement(host=self.host, pid=os.getpid(), device=self.device, models=self.catalog.cards())

    def hold(self, claim: Claim) -> None:
        """Loads the base model if need be and gives the session its adapter."""
        name = claim.spec.base_model.name
        try:
            directory = self.catalog.directory(name)
            self.engine.create_adapter(claim.session_id, directory, claim.spec.lora, claim.spec.seed).result()
        except (ValueError, OSError) as error:
            message = f"the base model {name} could not be loaded: {error}"
            raise OperationFailedError(ErrorCode.INVALID_INPUT, message) from error
        self.held.add(claim.session_id)

    def release(self, session_id: str) -> None:
        """Frees the session's adapter; releasing it twice is releasing it once."""
        self.engine.drop_adapter(session_id).result()
        self.held.discard(session_id)

    def release_lost(self) -> None:
        """Frees the adapters of sessions that the store says are not held here any more."""
        held = self.held.copy()
        for session_id in held - self.store.workers.sessions(self.worker_id):
            self.release(session_id)


def model_folders(settings: Settings) -> list[Path]:
    """The user's models before the bundled one, which an image may have been built without."""
    bundle = [bundled.DIRECTORY] if bundled.DIRECTORY.is_dir() else []
    return ([settings.models_dir] if settings.models_dir else []) + bundle


def engine_config(settings: Settings) -> EngineConfig:
    return EngineConfig(**{name: getattr(settings, name) for name in EngineConfig.__struct_fields__})


def call_seed(claim: Claim) -> int:
    """The seed of an operation's dropout masks: the same whenever the operation is run."""
    digest = blake2b(f"{claim.spec.seed}/{claim.seq}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1
