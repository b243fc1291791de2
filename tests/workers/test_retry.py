"""What a worker does again until Redis answers."""

import pytest
from redis.exceptions import ConnectionError as RedisAway

from domain.operation import OperationFailedError
from store.errors import ObjectsAwayError
from tests.workers.test_snapshot_writer import CLAIM
from workers import retry


def test_it_is_tried_until_redis_answers_with_ever_longer_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("time.sleep", pauses.append)

    def answer_at_last() -> str:
        if len(pauses) < 8:
            raise RedisAway
        return "done"

    assert retry.until_available(answer_at_last, "asking") == "done"
    assert pauses == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]


def test_what_is_asked_to_end_between_two_tries_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    tries: list[int] = []

    def away() -> None:
        tries.append(1)
        raise RedisAway

    def asked_to_end() -> None:
        if len(tries) == 3:
            raise SystemExit

    with pytest.raises(SystemExit):
        retry.until_available(away, "asking", between=asked_to_end)
    assert len(tries) == 3


def test_what_is_no_outage_is_raised_at_once() -> None:
    with pytest.raises(ZeroDivisionError):
        retry.until_available(lambda: 1 / 0, "dividing")


class Claims:
    """Of a claim that is good for so many looks."""

    def __init__(self, looks: int) -> None:
        self.looks = looks

    def is_held(self, _: object) -> bool:
        self.looks -= 1
        return self.looks >= 0


def tried(monkeypatch: pytest.MonkeyPatch, claims: Claims, limit: float, answers_at: float) -> list[float]:
    """The pauses until object storage answers, by a clock that they alone move."""
    pauses: list[float] = []
    monkeypatch.setattr("time.sleep", pauses.append)
    monkeypatch.setattr("time.monotonic", lambda: sum(pauses))

    def answer() -> None:
        if sum(pauses) < answers_at:
            raise ObjectsAwayError

    retry.OperationRetry(claims, limit).until_available(CLAIM, answer, "writing")  # type: ignore[arg-type]
    return pauses


def test_object_storage_is_waited_for_as_long_as_the_limit_says(monkeypatch: pytest.MonkeyPatch) -> None:
    assert tried(monkeypatch, Claims(99), 20.0, 3.0) == [0.1, 0.2, 0.4, 0.8, 1.6]
    with pytest.raises(ObjectsAwayError):
        tried(monkeypatch, Claims(99), 20.0, 30.0)


def test_it_is_not_waited_for_when_the_operation_has_been_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OperationFailedError, match="taken from this worker"):
        tried(monkeypatch, Claims(2), 20.0, 3.0)
