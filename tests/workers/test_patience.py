"""What a worker does again until Redis answers."""

import pytest
from redis.exceptions import ConnectionError as RedisAway

from workers import patience


def test_it_is_tried_until_redis_answers_with_ever_longer_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("time.sleep", pauses.append)

    def answer_at_last() -> str:
        if len(pauses) < 8:
            raise RedisAway
        return "done"

    assert patience.persist(answer_at_last, "asking") == "done"
    assert pauses == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]


def test_what_is_no_outage_is_raised_at_once() -> None:
    with pytest.raises(ZeroDivisionError):
        patience.persist(lambda: 1 / 0, "dividing")
