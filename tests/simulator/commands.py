"""The commands of Redis that the product uses, on dicts: what a server would answer, in a microsecond.

tests/simulator/comparison.py compares the answers with a real server's.
"""

from collections.abc import Callable, Sequence
from typing import Any

Reply = Any  # None, int, bytes, or a list of replies
Handler = Callable[..., Reply]
INFINITE = {b"-inf": float("-inf"), b"+inf": float("inf"), b"inf": float("inf")}


class Hash(dict[bytes, bytes]):
    pass


class Members(dict[bytes, None]):
    """A set that keeps the order in which its members came, so that a history can be had again."""


class Scores(dict[bytes, float]):
    @property
    def ordered(self) -> list[bytes]:
        return sorted(self, key=lambda member: (self[member], member))


class Stream(list[tuple[bytes, list[bytes]]]):
    pass


class Data:
    """One database. `clock` gives Unix seconds; a key whose time is over is gone when it is next looked at."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._values: dict[bytes, Any] = {}
        self._ends: dict[bytes, float] = {}

    def execute(self, name: str, *arguments: bytes) -> Reply:
        return COMMANDS[name](self, *arguments)

    def names(self) -> list[bytes]:
        """Of the keys that there are."""
        for key in list(self._ends):
            self.get(key, object)
        return list(self._values)

    def get(self, key: bytes, kind: type) -> Any:
        """What is there, None when nothing is."""
        if self._ends and key in self._ends and self._ends[key] <= self._clock():
            self.do_del(key)
        value = self._values.get(key)
        assert value is None or isinstance(value, kind), f"{key!r} is no {kind.__name__}"
        return value

    def _made(self, key: bytes, kind: type) -> Any:
        value = self.get(key, kind)
        if value is None:
            value = self._values[key] = kind()
        return value

    def _tidy(self, key: bytes, value: Any) -> None:
        """What is empty is not there."""
        if not value:
            self.do_del(key)

    def _drop(self, held: dict[bytes, Any] | None, key: bytes, names: Sequence[bytes]) -> int:
        """How many of the names were there."""
        if held is None:
            return 0
        before = len(held)
        for name in names:
            held.pop(name, None)
        self._tidy(key, held)
        return before - len(held)

    def do_time(self) -> Reply:
        seconds, rest = divmod(round(self._clock() * 1e6), 1_000_000)
        return [b"%d" % seconds, b"%d" % rest]

    def do_ping(self) -> Reply:
        return b"PONG"

    def do_publish(self, _channel: bytes, _message: bytes) -> Reply:
        return 0

    def do_exists(self, *keys: bytes) -> Reply:
        return sum(self.get(key, object) is not None for key in keys)

    def do_del(self, *keys: bytes) -> Reply:
        for key in keys:
            self._ends.pop(key, None)
        return sum(self._values.pop(key, None) is not None for key in keys)

    def do_expire(self, key: bytes, seconds: bytes) -> Reply:
        if self.get(key, object) is None:
            return 0
        self._ends[key] = self._clock() + int(seconds)
        return 1

    def do_set(self, key: bytes, value: bytes, *options: bytes) -> Reply:
        if b"NX" in options and self.get(key, object) is not None:
            return None
        self._ends.pop(key, None)
        self._values[key] = value
        if b"EX" in options:
            self.do_expire(key, options[options.index(b"EX") + 1])
        return b"OK"

    def do_get(self, key: bytes) -> Reply:
        return self.get(key, bytes)

    def do_hset(self, key: bytes, *pairs: bytes) -> Reply:
        fields = self._made(key, Hash)
        before = len(fields)
        fields.update(zip(pairs[::2], pairs[1::2], strict=True))
        return len(fields) - before

    def do_hsetnx(self, key: bytes, field: bytes, value: bytes) -> Reply:
        fields = self._made(key, Hash)
        if field in fields:
            return 0
        fields[field] = value
        return 1

    def do_hget(self, key: bytes, field: bytes) -> Reply:
        fields = self.get(key, Hash)
        return fields.get(field) if fields else None

    def do_hmget(self, key: bytes, *names: bytes) -> Reply:
        fields = self.get(key, Hash) or {}
        return [fields.get(name) for name in names]

    def do_hgetall(self, key: bytes) -> Reply:
        return [text for pair in (self.get(key, Hash) or {}).items() for text in pair]

    def do_hexists(self, key: bytes, field: bytes) -> Reply:
        return int(field in (self.get(key, Hash) or {}))

    def do_hincrby(self, key: bytes, field: bytes, more: bytes) -> Reply:
        fields = self._made(key, Hash)
        total = int(fields.get(field, b"0")) + int(more)
        fields[field] = b"%d" % total
        return total

    def do_hincrbyfloat(self, key: bytes, field: bytes, more: bytes) -> Reply:
        fields = self._made(key, Hash)
        fields[field] = text_of(float(fields.get(field, b"0")) + float(more))
        return fields[field]

    def do_hdel(self, key: bytes, *names: bytes) -> Reply:
        return self._drop(self.get(key, Hash), key, names)

    def do_sadd(self, key: bytes, *members: bytes) -> Reply:
        held = self._made(key, Members)
        before = len(held)
        held.update(dict.fromkeys(members))
        return len(held) - before

    def do_srem(self, key: bytes, *members: bytes) -> Reply:
        return self._drop(self.get(key, Members), key, members)

    def do_scard(self, key: bytes) -> Reply:
        return len(self.get(key, Members) or ())

    def do_sismember(self, key: bytes, member: bytes) -> Reply:
        return int(member in (self.get(key, Members) or ()))

    def do_smembers(self, key: bytes) -> Reply:
        return list(self.get(key, Members) or ())

    def do_srandmember(self, key: bytes, most: bytes) -> Reply:
        return self.do_smembers(key)[: int(most)]

    def do_zadd(self, key: bytes, *arguments: bytes) -> Reply:
        options, pairs = arguments[: len(arguments) % 2], arguments[len(arguments) % 2 :]
        scores = self.get(key, Scores) if b"XX" in options else self._made(key, Scores)
        added = 0
        for score, member in zip(pairs[::2], pairs[1::2], strict=True):
            is_there = scores is not None and member in scores
            if is_there != (b"NX" in options) if options else True:
                added += not is_there
                scores[member] = float(score)
        return added

    def do_zrem(self, key: bytes, *members: bytes) -> Reply:
        return self._drop(self.get(key, Scores), key, members)

    def do_zcard(self, key: bytes) -> Reply:
        return len(self.get(key, Scores) or ())

    def do_zscore(self, key: bytes, member: bytes) -> Reply:
        score = (self.get(key, Scores) or {}).get(member)
        return None if score is None else text_of(score)

    def do_zrank(self, key: bytes, member: bytes) -> Reply:
        scores = self.get(key, Scores) or Scores()
        return scores.ordered.index(member) if member in scores else None

    def do_zrange(self, key: bytes, start: bytes, stop: bytes, *options: bytes) -> Reply:
        scores = self.get(key, Scores) or Scores()
        return _with_scores(scores, _between(scores.ordered, int(start), int(stop)), options)

    def do_zrevrange(self, key: bytes, start: bytes, stop: bytes, *options: bytes) -> Reply:
        scores = self.get(key, Scores) or Scores()
        return _with_scores(scores, _between(scores.ordered[::-1], int(start), int(stop)), options)

    def do_zrangebyscore(self, key: bytes, least: bytes, most: bytes, *options: bytes) -> Reply:
        scores = self.get(key, Scores) or Scores()
        found = [member for member in scores.ordered if _is_within(scores[member], least, most)]
        if b"LIMIT" in options:
            place = options.index(b"LIMIT")
            offset, number = int(options[place + 1]), int(options[place + 2])
            found = found[offset : offset + number]
        return _with_scores(scores, found, options)

    def do_zremrangebyscore(self, key: bytes, least: bytes, most: bytes) -> Reply:
        found = self.do_zrangebyscore(key, least, most)
        return self.do_zrem(key, *found) if found else 0

    def do_xadd(self, key: bytes, *arguments: bytes) -> Reply:
        """Only as it is used here: MAXLEN ~ n, which a server need not trim to, then * and the fields."""
        stream, place = self._made(key, Stream), arguments.index(b"*")
        id = b"%d-%d" % (self._clock() * 1000, len(stream))
        stream.append((id, list(arguments[place + 1 :])))
        return id

    def do_xrange(self, key: bytes, *_: bytes) -> Reply:
        return [[id, fields] for id, fields in self.get(key, Stream) or ()]


COMMANDS: dict[str, Handler] = {
    name.removeprefix("do_").upper(): handler for name, handler in vars(Data).items() if name.startswith("do_")
}


def text_of(score: float) -> bytes:
    """As a server writes it."""
    return b"%d" % score if score.is_integer() and abs(score) < 1e17 else repr(score).encode()


def _between(members: list[bytes], start: int, stop: int) -> list[bytes]:
    length = len(members)
    first = max(start + length if start < 0 else start, 0)
    last = stop + length if stop < 0 else stop
    return members[first : last + 1] if last >= 0 else []


def _with_scores(scores: Scores, members: list[bytes], options: tuple[bytes, ...]) -> Reply:
    if b"WITHSCORES" not in options:
        return members
    return [text for member in members for text in (member, text_of(scores[member]))]


def _is_within(score: float, least: bytes, most: bytes) -> bool:
    return _is_above(score, least) and (score < _bound(most) or (score == _bound(most) and not most.startswith(b"(")))


def _is_above(score: float, least: bytes) -> bool:
    return score > _bound(least) or (score == _bound(least) and not least.startswith(b"("))


def _bound(text: bytes) -> float:
    text = text.removeprefix(b"(")
    return INFINITE[text] if text in INFINITE else float(text)
