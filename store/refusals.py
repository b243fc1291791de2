"""What Redis answers when it will not do something just now, whatever is asked: it is full, a replica, held up.

redis-py takes most of these for errors of the command, as a wrong type is. Here they are errors of the connection, as
LOADING is by its own choice: whoever waits for a server that is away waits for one that refuses, be it the store or
Celery (whose consumer would end); and the connection is given up, since a server that has become a replica stays one,
while its name leads to another by now.
"""

from redis.connection import DefaultParser
from redis.exceptions import ConnectionError, ExecAbortError

REASONS = {
    "BUSY": "it is held up by a script",
    "LOADING": "it is still reading its data",
    "MASTERDOWN": "it is a replica whose primary is away",
    "MISCONF": "it cannot write to its disk",
    "NOREPLICAS": "too few of its replicas are there",
    "OOM": "its memory is full",
    "READONLY": "it is a replica",
    "UNBLOCKED": "it has become a replica",
    # Of these words alone, whose code is ERR, redis-py knows what they mean.
    "max number of clients reached": "it has as many clients as it may have",
}

DISCARDED = "Transaction discarded because of: "


class RefusedError(ConnectionError):
    """Redis refuses just now what it may do later. The command has changed nothing."""


def sentence(error: BaseException) -> str:
    """Why there is no Redis just now."""
    reason = REASONS.get(getattr(error, "status_code", None) or "", REASONS.get(str(error)))
    return f"Redis refuses to work just now: {reason}" if reason else "Redis cannot be reached just now"


def _aborted(message: str, status_code: str) -> ConnectionError | ExecAbortError:
    """Why a transaction was discarded: what refuses EXEC itself stands behind the words of EXECABORT."""
    code, _, rest = message.removeprefix(DISCARDED).partition(" ")
    return RefusedError(rest, status_code=code) if code in REASONS else ExecAbortError(message, status_code=status_code)


# The table that all parsers share.
DefaultParser.EXCEPTION_CLASSES.update(dict.fromkeys(REASONS, RefusedError), EXECABORT=_aborted)
