"""What the store refuses, and what it means for Redis to be away."""

import redis.exceptions

from store.refusals import RefusedError

# Redis cannot be reached, or refuses to work just now: the caller may retry.
Unavailable = (redis.exceptions.ConnectionError, redis.exceptions.TimeoutError, RefusedError)


class ObjectsAwayError(Exception):
    """Object storage cannot be read, or takes no writes, just now: the caller may retry."""

    sentence = "the server's object storage cannot be read or written just now"


class DiskLowError(ObjectsAwayError):
    """What is left of the disk is kept for what has been accepted."""

    sentence = "the server's disk has no room for a large request just now"

    def __init__(self, free: int, floor: int) -> None:
        super().__init__(f"the objects' disk has {free} bytes free, and {floor} are kept free")


class ObjectMissingError(Exception):
    """Object storage is there, and has lost an object that a record refers to."""


# The server is there, and does not let its user run the command.
Forbidden = redis.exceptions.NoPermissionError


class StoreError(Exception):
    """A request that the store's rules refuse; the message is a sentence for the user."""


class NotFoundError(StoreError):
    """No such session, operation or checkpoint (any more)."""


class CheckpointGoneError(StoreError):
    """The checkpoint that a session was to go on from has been deleted."""


class ResourcesStoppedError(StoreError):
    """The model resources are stopped, or cannot be because of their sessions."""


class SessionNotActiveError(StoreError):
    """The session takes no new operations."""


class FullError(StoreError):
    """There is no room just now; `retry_after` is in seconds."""

    retry_after = 1


class NoRoomError(FullError):
    """Every worker that could take a session is full."""

    retry_after = 10

    def __init__(self) -> None:
        super().__init__(
            "every worker for this base model is full, or has no memory for such an adapter just now; stop a session, "
            "ask for a smaller rank, add a worker, or retry"
        )


class TooManyWaitingError(FullError):
    """The session's queue is full."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"{limit} operations of this session have not ended yet, the most that it may have")


class LimitReachedError(FullError):
    """A limit of the API key is reached."""

    def __init__(self, message: str, retry_after: int = 1) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class TooManyNamesError(StoreError):
    """The session has as many names to log under as it may."""


class KeyReusedError(StoreError):
    """The Idempotency-Key came before with another body."""

    def __init__(self) -> None:
        super().__init__("this Idempotency-Key came before with another body")


class NotCancellableError(StoreError):
    """The operation has started or ended."""
