"""Health, readiness, metrics, the documentation page, and Redis being away."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec

from app import create_app
from settings import Settings
from store.store import open_store
from tests.http.conftest import SESSIONS, Api


def test_alive_and_ready(api: Api) -> None:
    assert api.client.get("/healthz").json == {"status": "ok"}
    assert api.client.get("/readyz").json == {"status": "ok"}


def test_without_a_worker_it_is_alive_but_not_ready(api: Api) -> None:
    api.redis.flushall()
    assert api.client.get("/healthz").status_code == 200
    assert api.client.get("/readyz").status_code == 503
    assert api.client.get("/v1/models").json == []


def test_the_documentation_is_served_whole_by_this_server(api: Api) -> None:
    page = api.client.get("/docs")
    assert page.mimetype == "text/html"
    assert "http" not in page.text.replace('charset="utf-8"', "")
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    assert api.client.get("/static/lib/rapidoc-min.js").status_code == 200


def test_redis_away_is_a_503_to_be_retried(settings: Settings, tmp_path: Path) -> None:
    away = msgspec.structs.replace(settings, redis_url=f"unix://{tmp_path}/nobody.sock")
    store = open_store(away)
    client: Any = create_app(away, store).test_client()
    answers = [client.get(SESSIONS), client.get(f"{SESSIONS}/abc"), client.get("/readyz"), client.get("/metrics")]
    answers += [client.post(SESSIONS, json={"base_model": "m"}, headers={"Idempotency-Key": "k"})]
    assert [(answer.status_code, answer.json["code"]) for answer in answers] == [(503, 503)] * 5
    assert all(int(answer.headers["Retry-After"]) >= 1 for answer in answers)
    assert client.get("/healthz").status_code == 200
    store.close()


def test_importing_the_application_imports_no_torch_and_no_worker() -> None:
    code = "import app, sys; print([name for name in ('torch', 'transformers', 'workers') if name in sys.modules])"
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_server_without_memory_refuses_what_it_could_not_keep_and_goes_on_when_it_has_some(api: Api) -> None:
    session = api.session()
    api.redis.config_set("maxmemory", 1)
    try:
        refused = api.client.post(f"{session}:optim-step", json={})
    finally:
        api.redis.config_set("maxmemory", 0)
    assert refused.status_code == 503
    assert int(refused.headers["Retry-After"]) >= 1
    assert api.client.get(f"{session}/operations").json == []
    assert api.client.post(f"{session}:optim-step", json={}).status_code == 200
