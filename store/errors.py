"""What the store refuses, and what it means for Redis to be away."""

import redis.exceptions

# Redis cannot be reached, or cannot take a write just now: the caller may retry.
Unavailable = (
    redis.exceptions.ConnectionError,
    redis.exceptions.TimeoutError,
    redis.exceptions.OutOfMemoryError,
    redis.exceptions.ReadOnlyError,
)


class StoreError(Exception):
    """A request that the store's rules refuse; the message is a sentence for the user."""


class NotFoundError(StoreError):
    """No such session, operation or checkpoint (any more)."""


class CheckpointGoneError(StoreError):
    """The checkpoint that a session was to go on from has been deleted."""


class SessionNotActiveError(StoreError):
    """The session takes no new operations."""


class TooManyWaitingError(StoreError):
    """The session's lane is full; `retry_after` is in seconds."""

    def __init__(self, limit: int, retry_after: int = 1) -> None:
        super().__init__(f"{limit} operations of this session are waiting already, the most it may have")
        self.retry_after = retry_after


class KeyReusedError(StoreError):
    """The Idempotency-Key came before with another body."""


class NotCancellableError(StoreError):
    """The operation has started or ended."""
