"""What one API process signs, another takes: on hosts whose clocks differ, and after Redis has moved to another."""

import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest
from flask import g

from app import create_app
from app.links import upload_link
from app.signing import CLOCK_TOLERANCE
from domain.api_key import ANONYMOUS
from settings import Settings
from store.store import Store
from tests.http.conftest import Api
from tests.http.test_checkpoints import INFERENCE, download, save
from tests.http.test_console_login import log_in

MoveClock = Callable[[float], None]
# Of one host against another, in seconds: a little, a time zone, a battery that ran out.
SKEWS = (-1.0, 1.0, 7200.0, -3e8)


@pytest.fixture
def host_clock(monkeypatch: pytest.MonkeyPatch) -> MoveClock:
    """Moves the clock of this process' host."""
    real = time.time
    return lambda seconds: monkeypatch.setattr(time, "time", lambda: real() + seconds)


@pytest.fixture
def redis_clock(monkeypatch: pytest.MonkeyPatch) -> MoveClock:
    """Moves the clock of Redis, as a failover to another host may."""
    real = Store.now
    return lambda seconds: monkeypatch.setattr(Store, "now", lambda store: real(store) + seconds)


@pytest.fixture
def link(api: Api) -> str:
    """To a file of a checkpoint."""
    session = api.session()
    api.begin(session)
    (file,) = download(api, save(api, session, INFERENCE), "MERGED").json["data"]
    return urlsplit(file["url"]).path


def upload(app: Any) -> str:
    with app.test_request_context():
        g.owner = ANONYMOUS
        return urlsplit(upload_link("payloads/of/the-test")).path


@pytest.mark.parametrize("skew", SKEWS)
def test_a_link_of_one_host_is_taken_by_another_whose_clock_differs(
    api: Api, link: str, host_clock: MoveClock, skew: float
) -> None:
    host_clock(skew)
    assert api.client.get(link).status_code == 200


@pytest.mark.parametrize("skew", SKEWS)
def test_an_upload_begun_on_one_host_ends_on_another_whose_clock_differs(
    app: Any, store: Store, host_clock: MoveClock, skew: float
) -> None:
    path = upload(app)
    host_clock(skew)
    assert app.test_client().put(path, data=b"body").status_code == 200
    assert store.uploads.get("of", "the-test") == b"body"


@pytest.mark.parametrize("skew", SKEWS)
def test_a_login_is_good_on_a_host_whose_clock_differs(
    settings: Settings, store: Store, host_clock: MoveClock, skew: float
) -> None:
    client = create_app(msgspec.structs.replace(settings, api_keys=("one",)), store).test_client()
    assert log_in(client, "one").location == "/"
    host_clock(skew)
    assert client.get("/").status_code == 200


@pytest.mark.parametrize(
    ("moved", "status"),
    [
        (-1.0, 200),
        (2 - CLOCK_TOLERANCE, 200),
        (-CLOCK_TOLERANCE - 2, 403),
        (Settings().link_seconds - 2, 200),
        (Settings().link_seconds + 2, 403),
    ],
)
def test_a_redis_that_is_a_little_behind_the_one_before_is_put_up_with(
    api: Api, app: Any, link: str, redis_clock: MoveClock, moved: float, status: int
) -> None:
    path = upload(app)
    redis_clock(moved)
    assert api.client.get(link).status_code == status
    assert app.test_client().put(path, data=b"body").status_code == status
