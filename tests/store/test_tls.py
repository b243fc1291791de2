"""TLS to Redis: a server that cannot be verified is refused by all who speak to it."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from celery import Celery
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from domain.redis_url import read_redis_url
from store.access import check_access
from store.broker import broker_settings
from store.connection import connect
from store.dispatch import Dispatcher, producer
from tests.tls import Authority, serving_tls

Servers = Callable[[str], str]


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("tls") / "ours")


@pytest.fixture(scope="module")
def address(redis_url: str, authority: Authority) -> Iterator[str]:
    with serving_tls(redis_url, authority.certificate("server", "127.0.0.1")) as address:
        yield address


def who_reaches(url: str) -> set[str]:
    """Those who get an answer from the server."""
    server = read_redis_url(url)
    celery = Celery("of the test", set_as_current=False)
    celery.conf.update(broker_settings(server))
    users: dict[str, Callable[[], object]] = {
        "store": lambda: connect(server).ping(),
        "broker of those who send": Dispatcher(producer(server)).check,
        "broker of workers": lambda: celery.connection_for_read().ensure_connection(max_retries=1, interval_start=0),
    }
    reached = set()
    for name, reach in users.items():
        with suppress(OperationalError, RedisError, OSError):
            reach()
            reached.add(name)
    return reached


ALL = {"store", "broker of those who send", "broker of workers"}


def refusal(url: str) -> str:
    server = read_redis_url(url)
    with pytest.raises(ValueError, match="CELERITY_REDIS_URL") as refused:
        check_access(connect(server), server)
    return str(refused.value)


def test_a_server_of_an_authority_that_is_trusted_is_reached(address: str, authority: Authority) -> None:
    assert who_reaches(f"rediss://{address}/0?ssl_ca_certs={authority.file}") == ALL


def test_a_certificate_that_nobody_vouches_for_is_refused_unless_the_url_says_not_to_look(address: str) -> None:
    assert who_reaches(f"rediss://{address}/0") == set()
    assert "certificate verify failed" in refusal(f"rediss://{address}/0")
    assert who_reaches(f"rediss://{address}/0?ssl_cert_reqs=none") == ALL


def test_a_certificate_of_another_authority_is_refused(address: str, tmp_path: Path) -> None:
    other = Authority(tmp_path / "theirs")
    assert who_reaches(f"rediss://{address}/0?ssl_ca_certs={other.file}") == set()
    assert "certificate verify failed" in refusal(f"rediss://{address}/0?ssl_ca_certs={other.file}")


def test_a_certificate_of_another_host_is_refused_unless_the_url_says_not_to_look(
    redis_url: str, authority: Authority
) -> None:
    with serving_tls(redis_url, authority.certificate("elsewhere", "192.0.2.1")) as address:
        url = f"rediss://{address}/0?ssl_ca_certs={authority.file}"
        assert who_reaches(url) == set()
        assert "IP address mismatch" in refusal(url)
        assert who_reaches(f"{url}&ssl_check_hostname=false") == ALL


def test_a_server_that_asks_for_a_certificate_gets_the_one_of_the_url(redis_url: str, authority: Authority) -> None:
    own = authority.certificate("celerity", "127.0.0.1")
    with serving_tls(redis_url, authority.certificate("strict", "127.0.0.1"), clients=authority.file) as address:
        url = f"rediss://{address}/0?ssl_ca_certs={authority.file}"
        assert who_reaches(f"{url}&ssl_certfile={own.certificate}&ssl_keyfile={own.key}") == ALL
        assert who_reaches(url) == set()
