"""How quickly a peer has to send and to read: the rule of Apache's mod_reqtimeout."""

LEAST_RATE = 10_000
"""Bytes a second, on average, once the grace is over."""


class Pace:
    """Begins at `now`, when `moved` bytes had come or gone. `grace` is in seconds."""

    def __init__(self, grace: float, now: float, moved: int) -> None:
        self._ends_at = now + grace
        self._began_with = moved

    def is_kept(self, now: float, moved: int) -> bool:
        """Whether enough bytes have moved since the beginning for it to go on at `now`."""
        return moved - self._began_with >= (now - self._ends_at) * LEAST_RATE
