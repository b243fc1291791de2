"""What one worker process is: its identity, the store, the engine and the base models at hand."""

import logging
import os
import secrets
import socket
import time

from models.catalog import Catalog
from models.folders import model_folders
from models.hub import Hub, Memory
from settings import Settings
from store.errors import ObjectsAwayError, Unavailable
from store.refusals import sentence
from store.store import open_store
from store.workers import Announcement
from workers.checkpoint_writer import CheckpointWriter
from workers.engine.config import EngineConfig
from workers.engine.engine import Engine
from workers.engine.loading.description import describe
from workers.lost_operations import LostOperations
from workers.probe import Probe
from workers.readers_writer_lock import ReadersWriterLock
from workers.residency import Residency
from workers.retry import OperationRetry, until_available
from workers.snapshot_writer import SnapshotWriter

log = logging.getLogger(__name__)


class Runtime:
    """The worker's id names its queue and is new with each process, so that nothing meant for a
    process that died reaches the one that replaced it."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.host = socket.gethostname()
        self.worker_id = f"{self.host}-{os.getpid()}-{secrets.token_hex(4)}"
        self.store = open_store(settings)
        self.probe = Probe(self.store, self.worker_id)
        config = engine_config(settings)
        self.device = str(config.torch_device)
        self.engine = Engine(config)
        memory = Memory(self.engine.free_bytes, config.torch_dtype.itemsize)
        hub = Hub(settings.hub_models, settings.disk_floor_bytes, memory)
        self.catalog = Catalog(model_folders(settings.models_dir), describe, hub)
        self.retry = OperationRetry(self.store.claims, settings.objects_timeout)
        self.checkpoints = CheckpointWriter(self.store, self.catalog, config.torch_dtype, self.retry)
        self.lost_operations = LostOperations(self.store, self.worker_id)
        self.operation_lock = ReadersWriterLock()
        self.snapshots = SnapshotWriter(self.store, self.engine, settings)
        self.residency = Residency(
            self.store, self.engine, self.catalog, self.retry, settings.resident_sessions, settings.reserved_bytes,
            self.engine.free_bytes, settings.create_session_timeout,
        )  # fmt: skip

    def start(self) -> None:
        """Waits for Redis and object storage. Raises ValueError when Redis does not let this process work, or may throw
        operations away, and when the objects cannot be had."""
        until_available(self.store.check_access, "starting")
        policy = until_available(self.store.eviction_policy, "starting")
        if policy != "noeviction":
            raise ValueError(
                f"Redis has the eviction policy {policy} and could drop accepted operations; "
                "set maxmemory-policy to noeviction"
            )
        until_available(self.store.check_objects, "starting", away=(ObjectsAwayError,))
        self.engine.start()

    def close(self) -> None:
        """Lets others take over what this process holds, now rather than when its heartbeat is missed."""
        self.engine.close()
        self.snapshots.close()
        self._leave()

    def announcement(self) -> Announcement:
        """What has changed since the last one, and what has not."""
        decode, training = self.engine.take_utilization()
        return Announcement(
            host=self.host,
            pid=os.getpid(),
            device=self.device,
            models=self.catalog.cards(),
            refused=self.catalog.unserved,
            capacity=self.settings.max_worker_sessions,
            resident=self.residency.count,
            resident_bytes=self.residency.size,
            free_bytes=self.engine.free_bytes(),
            total_bytes=self.engine.total_bytes(),
            reserved_bytes=self.settings.reserved_bytes,
            decode_utilization=decode,
            training_utilization=training,
        )

    def drain(self) -> None:
        """Gives the sessions to other workers if there are any, and ends the process when what it runs takes
        longer than it may: that goes back, and is run elsewhere."""
        self._leave()
        time.sleep(self.settings.drain_seconds)
        log.warning("still running after %.0f s of draining: going", self.settings.drain_seconds)
        os._exit(0)

    def _leave(self) -> None:
        try:
            self.store.workers.leave(self.worker_id)
        except Unavailable as error:
            log.warning("others will miss the heartbeat, since they were not told: %s (%s)", sentence(error), error)


def engine_config(settings: Settings) -> EngineConfig:
    return EngineConfig(**{name: getattr(settings, name) for name in EngineConfig.__struct_fields__})
