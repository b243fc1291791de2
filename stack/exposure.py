"""Valkey's files hold the secret that the API signs with: where others could read them, it is forgotten."""

from pathlib import Path

import redis

from stack.log import Log
from store import keys
from store.private_files import FILE, VALKEY, close_data_dir

# It stays until the secret is forgotten, whoever is killed meanwhile.
MARK = "exposed"


def close_files(data_dir: Path, log: Log) -> None:
    """Takes the files of DATA_DIR from all but their owner, before anything runs."""
    closed = close_data_dir(data_dir)
    if not closed:
        return
    if data_dir / VALKEY in closed:
        (data_dir / VALKEY / MARK).touch(FILE)
    names = ", ".join(str(path) for path in closed)
    log.write("stack", f"other users of this host could reach {names}: closed to all but their owner")


def forget_if_exposed(data_dir: Path, client: redis.Redis, log: Log) -> None:
    """The API draws another secret when it needs one. Raises ValueError when Valkey takes no writes."""
    mark = data_dir / VALKEY / MARK
    if not mark.exists():
        return
    try:
        client.delete(keys.SIGNING_SECRET)
    except redis.ResponseError as error:
        raise ValueError(
            f"a secret that others could read stays good, since Valkey takes no writes: {error}"
        ) from error
    mark.unlink()
    log.write(
        "stack",
        "they could read what the API signs with: a new secret is drawn, and older links have ended",
    )
