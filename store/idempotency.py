"""One effect per Idempotency-Key: what a key was first used for, and the answer it got."""

import msgspec


class Once(msgspec.Struct, frozen=True):
    """A client's Idempotency-Key: where it counts (`scope`), and the digest of its body."""

    scope: str
    key: str
    digest: bytes
