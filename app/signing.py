"""Links that the server knows again: signed, and good for so many seconds in any API process."""

from typing import Any

from itsdangerous import SignatureExpired, URLSafeTimedSerializer
from itsdangerous.timed import TimestampSigner

from app.state import state

# They are dated by Redis' clock, so the clocks of the API's hosts do not matter. That of Redis may be another's after a
# failover, and stand this much behind the one before.
CLOCK_TOLERANCE = 60.0


def sign(value: Any, salt: str) -> str:
    """Text that `unsign` reads for the same `salt`, whole and no older than it asks."""
    text: str = _serializer(salt).dumps(value)
    return text


def unsign(text: str, salt: str, seconds: float) -> Any:
    """The value. Raises BadData for text that was changed, is not ours, or was signed longer ago."""
    value, signed_at = _serializer(salt).loads(text, return_timestamp=True)
    age = state().store.now() - signed_at.timestamp()
    if not -CLOCK_TOLERANCE <= age <= seconds:
        raise SignatureExpired(f"signed {age:.0f} s ago", date_signed=signed_at)
    return value


class StoreSigner(TimestampSigner):
    def get_timestamp(self) -> int:
        return int(state().store.now())


def _serializer(salt: str) -> URLSafeTimedSerializer:
    return URLSafeTimedSerializer(state().store.signing_secret.read(), salt=salt, signer=StoreSigner)
