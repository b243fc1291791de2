"""A result that is no longer kept is not awaited through Celery either."""

from pathlib import Path

import pytest
from celery import Celery
from celery.result import AsyncResult

from domain.operation import OperationKind
from store.errors import NotFoundError
from tests.engine.calls import packed, random_sample
from tests.workers.conftest import Begin


def test_reading_a_result_that_has_been_removed_raises_instead_of_waiting(
    redis_url: str, tmp_path: Path, begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CELERITY_REDIS_URL", redis_url)
    monkeypatch.setenv("DATA_DIR", str(tmp_path))
    app = Celery("reader", backend="workers.backend.OperationBackend", set_as_current=False)
    harness = begin(results_kept=1, result_retention=-1.0)
    session = harness.session()
    old, new = (harness.run(session, OperationKind.FORWARD_BACKWARD, packed([random_sample(1, 5)])) for _ in range(2))
    harness.store.janitor.expire_results()
    assert AsyncResult(new.id, app=app).get(timeout=0)["metrics"]
    with pytest.raises(NotFoundError, match="no longer kept"):
        AsyncResult(old.id, app=app).get(timeout=0)
