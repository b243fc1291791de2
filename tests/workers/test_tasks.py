"""A task around its operation."""

from pathlib import Path

import pytest
from redis import Redis
from redis.exceptions import ResponseError

from settings import Settings
from store import keys
from workers import process
from workers.celery_app import app
from workers.runtime import Runtime


def test_an_operation_whose_claim_failed_is_not_taken_to_run_here(
    redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = Runtime(Settings(data_dir=tmp_path, redis_url=redis_url, device="cpu"))
    monkeypatch.setattr(process, "_runtime", runtime)
    app.loader.import_default_modules()
    with Redis.from_url(redis_url) as redis:
        redis.set(keys.operation("spoilt"), "not a hash")
        with pytest.raises(ResponseError):
            app.tasks["sample"].apply(task_id="spoilt", throw=True)
        redis.delete(keys.operation("spoilt"))
    assert runtime.stranded.here == set()
    runtime.store.close()
