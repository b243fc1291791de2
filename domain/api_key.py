"""An API key: who may call, and how much. Whoever holds it owns the sessions that were made with it."""

import msgspec

ANONYMOUS = "anonymous"
"""The owner of what is made on a server without keys."""


class KeyLimits(msgspec.Struct, frozen=True, kw_only=True):
    """None is the server's default, 0 is no limit.

    `max_sessions` counts sessions that have not ended, `max_waiting` the operations of all of them
    that have not ended, `rate` requests a second; `max_body_bytes` is of one request.
    """

    max_sessions: int | None = None
    max_waiting: int | None = None
    rate: float | None = None
    max_body_bytes: int | None = None


class ApiKey(msgspec.Struct, frozen=True, kw_only=True):
    """A key as the store knows it, which is without the key itself. Times are Unix seconds.

    `id` names the owner: the first 16 hexadecimal digits of the key's SHA-256.
    """

    id: str
    name: str
    limits: KeyLimits
    created_at: float
    revoked_at: float | None = None
