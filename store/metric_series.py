"""The metric series of a session: what its operations measured as they finished, and what its user logged."""

from collections.abc import Sequence
from typing import Any

import msgspec

from store import keys
from store.context import Context
from store.errors import KeyReusedError, NotFoundError, TooManyNamesError
from store.idempotency import IdempotencyKey, idempotency_arguments

MOST_NAMES = 32
REWARD = "reward"
# As many of the newest points as tell the last loss and how fast tokens go by.
NEWEST = 16


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """Values that belong to one step. `id` orders the points of one stream, `time` is in Unix seconds; `sampled` and
    `trained` are the session's tokens by then, which what is logged does not know."""

    id: str
    time: float
    step: int
    values: dict[str, float]
    sampled: int = 0
    trained: int = 0

    @property
    def tokens(self) -> int:
        return self.sampled + self.trained


class Latest(msgspec.Struct, frozen=True, kw_only=True):
    """The newest values of a session's series; None where there is none yet."""

    loss: float | None = None
    reward: float | None = None
    tokens_per_second: float | None = None


class MetricSeries:
    def __init__(self, context: Context) -> None:
        self._context = context

    def log(
        self, session_id: str, name: str, step: int, value: float, idempotency_key: IdempotencyKey | None = None
    ) -> None:
        """Adds a point to the user's series `name`. Raises NotFoundError, TooManyNamesError, KeyReusedError."""
        values = msgspec.json.encode({name: value})
        reply = self._context.scripts.run(
            "log",
            session=session_id,
            name=name,
            step=step,
            values=values,
            **idempotency_arguments(idempotency_key),
            most_names=MOST_NAMES,
            most_points=self._context.settings.curve_points,
        )
        if reply[0] == b"unknown":
            raise NotFoundError("no such training session")
        if reply[0] == b"full":
            raise TooManyNamesError(f"a session has at most {MOST_NAMES} names to log under")
        if reply[0] == b"reused":
            raise KeyReusedError

    def measured(self, session_id: str, after: str, most: int) -> list[Point]:
        """What operations measured, the oldest first, from the first one or `after` the id of one."""
        return self._read(keys.series(session_id), after, most)

    def logged(self, session_id: str, after: str, most: int) -> list[Point]:
        """The same of what was logged."""
        return self._read(keys.logged(session_id), after, most)

    def latest(self, session_ids: Sequence[str]) -> list[Latest]:
        """One for each session, in one round trip."""
        with self._context.redis.pipeline(transaction=False) as pipeline:
            for session_id in session_ids:
                pipeline.xrevrange(keys.series(session_id), count=NEWEST)
                pipeline.xrevrange(keys.logged(session_id), count=NEWEST)
            replies = pipeline.execute()
        rows = [[_point(*entry) for entry in reversed(reply)] for reply in replies]
        return [_latest(measured, logged) for measured, logged in zip(rows[::2], rows[1::2], strict=True)]

    def _read(self, key: str, after: str, most: int) -> list[Point]:
        entries = self._context.redis.xrange(key, min=f"({after}" if after else "-", count=most)
        return [_point(*entry) for entry in entries]


def _point(id: bytes, fields: dict[bytes, Any]) -> Point:
    return Point(
        id=id.decode(),
        time=int(id.partition(b"-")[0]) / 1000,
        step=int(fields[b"step"]),
        values=msgspec.json.decode(fields[b"values"], type=dict[str, float]),
        sampled=int(fields.get(b"sampled", 0)),
        trained=int(fields.get(b"trained", 0)),
    )


def _latest(measured: list[Point], logged: list[Point]) -> Latest:
    return Latest(loss=_last(measured, "loss"), reward=_last(logged, REWARD), tokens_per_second=_rate(measured))


def _last(points: list[Point], name: str) -> float | None:
    return next((point.values[name] for point in reversed(points) if name in point.values), None)


def _rate(points: list[Point]) -> float | None:
    """Tokens a second between the first and the last of these points."""
    if len(points) < 2 or points[-1].time <= points[0].time:
        return None
    return (points[-1].tokens - points[0].tokens) / (points[-1].time - points[0].time)
