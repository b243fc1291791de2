"""When Celery's consumer connects to the broker."""

from types import SimpleNamespace

import pytest
from celery.exceptions import WorkerShutdown
from celery.worker import state
from celery.worker.consumer import Consumer

from store.refusals import RefusedError
from workers import consumer as consumer_module
from workers.celery_app import app
from workers.consumer import RetryingConsumer


class Server:
    """Refuses to work for as long as it is told to; notes what is asked of it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, refusals: int) -> None:
        self.refusals, self.asked = refusals, list[str]()
        runtime = SimpleNamespace(store=SimpleNamespace(check_writable=self.check_writable))
        monkeypatch.setattr(consumer_module, "current", lambda: runtime)
        monkeypatch.setattr(Consumer, "connect", lambda _: self.asked.append("connect"))
        monkeypatch.setattr("time.sleep", lambda _: None)

    def check_writable(self) -> None:
        self.asked.append("check")
        if len(self.asked) <= self.refusals:
            raise RefusedError


def test_it_waits_until_redis_takes_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(monkeypatch, refusals=3)
    RetryingConsumer.connect(RetryingConsumer.__new__(RetryingConsumer))
    assert server.asked == ["check"] * 4 + ["connect"]


def test_a_worker_that_is_asked_to_end_meanwhile_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(monkeypatch, refusals=1000)
    monkeypatch.setattr(state, "should_stop", 0)
    with pytest.raises(WorkerShutdown):
        RetryingConsumer.connect(RetryingConsumer.__new__(RetryingConsumer))
    assert server.asked == ["check"]


def test_it_is_the_one_that_workers_have() -> None:
    assert app.conf.worker_consumer == "workers.consumer:RetryingConsumer"
