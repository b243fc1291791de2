"""Disks without room, for a while."""

import random
import time

from store.private_files import OBJECTS
from tests.chaos.deployment import Deployment
from tests.chaos.disk import Disk

# Longer than a heartbeat may be missed.
FULL_SECONDS = 4.0


def fill_objects_disk(deployment: Deployment, _: random.Random) -> None:
    """Of inodes: where there is no room in bytes, a checkpoint is refused, as it should be."""
    disk = deployment.disks[deployment.plan.settings.data_dir / OBJECTS]
    disk.fill_inodes()
    _clear_later(disk)


def fill_valkey_disk(deployment: Deployment, _: random.Random) -> None:
    """The primary's: it cannot append to its file. One that has been a replica since its start would then spoil that
    file, as Valkey 9.1.2 does without Celerity too."""
    with deployment.servers.primary.admin() as admin:
        deployment.servers.await_primary()
        if admin.info("replication")["second_repl_offset"] >= 0:
            deployment.kill(deployment.servers.primary.name)
            deployment.servers.await_primary()
    disk = deployment.disks[deployment.servers.primary.data_dir]
    disk.fill()
    _clear_later(disk)


def _clear_later(disk: Disk) -> None:
    time.sleep(FULL_SECONDS)
    disk.clear()
