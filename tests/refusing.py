"""A server that is there and refuses to work: each way by which the real one can be brought to it, and back."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError, RedisError, ResponseError
from redis.retry import Retry

from tests.waiting import eventually

# A server whose snapshots can fail, but make none by themselves.
CONFIG = {"maxmemory-policy": "noeviction", "save": "3600 1000000"}


class Server(Protocol):
    """A server of a test: where it listens, and where it has its files."""

    @property
    def port(self) -> int: ...

    @property
    def data_dir(self) -> Path: ...


def _isolate(admin: Any, _: Path) -> None:
    admin.config_set("min-replicas-to-write", 100)  # more than there are


def _connect(admin: Any, _: Path) -> None:
    admin.config_set("min-replicas-to-write", 0)


def _demote(admin: Any, _: Path) -> None:
    # Of nobody, so that it keeps its data, as the old primary does after a failover.
    admin.replicaof("127.0.0.1", 1)


def _promote(admin: Any, _: Path) -> None:
    admin.replicaof("NO", "ONE")


def _fill(admin: Any, _: Path) -> None:
    admin.config_set("maxmemory", 1)


def _empty(admin: Any, _: Path) -> None:
    admin.config_set("maxmemory", 0)


def _break_disk(admin: Any, folder: Path) -> None:
    # What is no file cannot be replaced by one, by root neither.
    (folder / "dump.rdb").unlink(missing_ok=True)
    (folder / "dump.rdb").mkdir()
    _save(admin, "err")


def _mend_disk(admin: Any, folder: Path) -> None:
    (folder / "dump.rdb").rmdir()
    _save(admin, "ok")


def _save(admin: Any, expected: str) -> None:
    admin.bgsave()
    eventually(lambda: admin.info("persistence")["rdb_last_bgsave_status"] == expected)


def _detach(admin: Any, folder: Path) -> None:
    admin.config_set("replica-serve-stale-data", "no")
    _demote(admin, folder)


def _attach(admin: Any, folder: Path) -> None:
    _promote(admin, folder)
    admin.config_set("replica-serve-stale-data", "yes")


def _hold_up(admin: Any, _: Path) -> None:
    admin.config_set("busy-reply-threshold", 1)
    threading.Thread(target=_loop, args=(admin.connection_pool.connection_kwargs["port"],)).start()
    eventually(lambda: _is_busy(admin))


def _loop(port: int) -> None:
    # A client that tried again would start the script anew after it was killed.
    with Redis(port=port, socket_timeout=None, retry=Retry(NoBackoff(), 0)) as held, suppress(RedisError):
        held.eval("while true do end", 0)


def _is_busy(admin: Any) -> bool:
    try:
        admin.ping()
    except (ConnectionError, ResponseError):  # as the store reads it, and as redis-py does
        return True
    return False


def _release(admin: Any, _: Path) -> None:
    admin.script_kill()
    eventually(lambda: not _is_busy(admin))
    admin.config_set("busy-reply-threshold", 5000)


REFUSALS = {
    "NOREPLICAS": (_isolate, _connect, "too few of its replicas are there"),
    "READONLY": (_demote, _promote, "it is a replica"),
    "OOM": (_fill, _empty, "its memory is full"),
    "MISCONF": (_break_disk, _mend_disk, "it cannot write to its disk"),
}

# These refuse to read as well.
SILENCES = {
    "BUSY": (_hold_up, _release, "it is held up by a script"),
    "MASTERDOWN": (_detach, _attach, "it is a replica whose primary is away"),
}


@contextmanager
def refusing(server: Server, code: str) -> Iterator[str]:
    """The server answers what would write with `code` for as long as the block runs. Gives the sentence for it."""
    begin, end, reason = (REFUSALS | SILENCES)[code]
    with Redis(port=server.port) as admin:
        begin(admin, server.data_dir)
        try:
            yield f"Redis refuses to work just now: {reason}"
        finally:
            end(admin, server.data_dir)
