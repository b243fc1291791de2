"""What every answer tells a browser, pages and errors too."""

import pytest

from tests.http.conftest import SESSIONS, Api


@pytest.mark.parametrize(
    "path", [SESSIONS, "/docs", "/static/lib/rapidoc-min.js", "/openapi.json", "/healthz", "/nothing"]
)
def test_no_answer_is_framed_sniffed_or_told_to_others(api: Api, path: str) -> None:
    headers = api.client.get(path).headers
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["X-Frame-Options"] == "DENY"
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
    assert headers["Referrer-Policy"] == "no-referrer"


def test_only_the_page_may_run_a_script(api: Api) -> None:
    assert "script-src 'self'" in api.client.get("/docs").headers["Content-Security-Policy"]
    assert "script-src" not in api.client.get(SESSIONS).headers["Content-Security-Policy"]


@pytest.mark.parametrize("path", [SESSIONS, f"{SESSIONS}/unknown", "/v1/models"])
def test_nothing_of_the_api_is_cached(api: Api, path: str) -> None:
    assert api.client.get(path).headers["Cache-Control"] == "no-store"


def test_a_page_tells_its_origin_to_its_own_server_alone(api: Api) -> None:
    """Else the browser would send our own forms without an origin."""
    assert api.client.get("/").headers["Referrer-Policy"] == "same-origin"
