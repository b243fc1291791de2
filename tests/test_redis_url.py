"""CELERITY_REDIS_URL: one URL, the same server for redis-py and Celery's broker."""

from typing import Any

import pytest
from celery import Celery
from redis import SSLConnection, UnixDomainSocketConnection

from domain.redis_url import RedisUrl, read_redis_url
from settings import Settings, load_settings
from store.broker import broker_settings
from store.connection import connect

PLACES = ("host", "port", "path", "db", "username", "password")
# The URL, and what both must connect to: host, port, path, database, user, password.
FORMS: dict[str, tuple[Any, ...]] = {
    "redis://": ("localhost", 6379, None, 0, None, None),
    "redis://one": ("one", 6379, None, 0, None, None),
    "redis://one:7000/3": ("one", 7000, None, 3, None, None),
    "redis://one?db=3": ("one", 6379, None, 3, None, None),
    "redis://:secret@one/": ("one", 6379, None, 0, None, "secret"),
    "redis://ann:a%40b%2Fc%3Ad%25e%23f%3Bg%2Bh+i@one/1": ("one", 6379, None, 1, "ann", "a@b/c:d%e#f;g+h+i"),
    "redis://an%40n:%C3%A9@one": ("one", 6379, None, 0, "an@n", "é"),
    "redis://[::1]:7000/1": ("::1", 7000, None, 1, None, None),
    "valkey://one/2": ("one", 6379, None, 2, None, None),
    "unix:///run/redis.sock": (None, None, "/run/redis.sock", 0, None, None),
    "unix:///run/a%20b.sock?db=2": (None, None, "/run/a b.sock", 2, None, None),
    "unix://ann:p%3Fw@/run/redis.sock?virtual_host=4": (None, None, "/run/redis.sock", 4, "ann", "p?w"),
    "redis+socket:///run/redis.sock?virtual_host=2": (None, None, "/run/redis.sock", 2, None, None),
    "redis+socket://:p%40w@/run/redis.sock?db=2": (None, None, "/run/redis.sock", 2, None, "p@w"),
    "rediss://ann:pw@one:7000/1": ("one", 7000, None, 1, "ann", "pw"),
    "valkeys://one": ("one", 6379, None, 0, None, None),
}


def connections(url: str) -> dict[str, Any]:
    """A connection that each of the two would make."""
    server = read_redis_url(url)
    celery = Celery("of the test", set_as_current=False)
    celery.conf.update(broker_settings(server))
    # kombu's own reading of its URL; a channel would connect at once.
    broker = celery.connection_for_write()
    channel = object.__new__(broker.transport.Channel)
    channel.connection = broker.transport
    params = channel._connparams()
    pool: Any = connect(server).connection_pool
    return {
        "store": pool.connection_class(**_settled(pool.connection_kwargs)),
        "broker": params.pop("connection_class")(**_settled(params)),
    }


def _settled(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name not in ("max_connections", "timeout")}


@pytest.mark.parametrize("url", FORMS)
def test_one_url_leads_both_to_the_same_server(url: str) -> None:
    for name, connection in connections(url).items():
        assert tuple(getattr(connection, place, None) for place in PLACES) == FORMS[url], name
        assert isinstance(connection, UnixDomainSocketConnection) == (FORMS[url][2] is not None), name
        assert isinstance(connection, SSLConnection) == url.startswith(("rediss", "valkeys")), name


@pytest.mark.parametrize(
    ("query", "options"),
    [
        ("", {"cert_reqs": 2, "check_hostname": True, "ca_certs": None}),
        ("?ssl_cert_reqs=required", {"cert_reqs": 2, "check_hostname": True}),
        ("?ssl_cert_reqs=CERT_NONE", {"cert_reqs": 0, "check_hostname": False}),
        ("?ssl_cert_reqs=none", {"cert_reqs": 0, "check_hostname": False}),
        ("?ssl_check_hostname=false", {"cert_reqs": 2, "check_hostname": False}),
    ],
)
def test_certificates_are_verified_by_both_unless_the_url_says_not_to(query: str, options: dict[str, Any]) -> None:
    for name, connection in connections(f"rediss://one/0{query}").items():
        assert {option: getattr(connection, option) for option in options} == options, name


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("one:6379", "one Redis server"),
        ("localhost", "one Redis server"),
        ("redis:one", "one Redis server"),
        ("http://one", "one Redis server"),
        ("sentinel://one:26379", "one Redis server"),
        ("redis://one;redis://two", "one Redis server"),
        ("redis://one,two:7", "one Redis server"),
        ("redis://:pass#word@one", "percent code"),
        ("redis://:pass/word@one:1", "percent code"),
        ("redis://:pass?word@one:1", "percent code"),
        ("redis://:pass[word@one", "percent code"),
        ("redis://one:70000", "one Redis server"),
        ("redis://one:0", "one Redis server"),
        ("redis://one/first", "must be a number"),
        ("redis://one/-1", "must be a number"),
        ("redis://one/1?db=1", "names the database twice"),
        ("unix:///run/s?db=1&virtual_host=1", "names the database twice"),
        ("unix://run/redis.sock", "unix:///path"),
        ("unix://", "unix:///path"),
        ("redis://one?ssl_ca_certs=/ca.pem", "rediss://host/0"),
        ("unix:///run/s?ssl_cert_reqs=none", "rediss://host/0"),
        ("rediss://one?ssl_ca_certs=ca.pem", "must be a whole path"),
        ("rediss://one?ssl_cert_reqs=optional", "ssl_cert_reqs must be one of required"),
        ("rediss://one?ssl_cert_reqs=", "ssl_cert_reqs must be one of required"),
        ("rediss://one?ssl_cert_reqs=none&ssl_cert_reqs=required", "comes twice"),
        ("rediss://one?ssl_ciphers=x", "ssl_ciphers"),
        ("redis://one?socket_timeout=5", "socket_timeout"),
    ],
)
def test_a_url_that_not_both_could_use_is_refused_in_a_sentence_without_the_password(url: str, words: str) -> None:
    with pytest.raises(ValueError, match=r"^CELERITY_REDIS_URL has a value that it does not take: ") as refused:
        load_settings({"CELERITY_REDIS_URL": url})
    assert words in str(refused.value)
    assert "word" not in str(refused.value).replace("password", "")


@pytest.mark.parametrize("parameter", ["ssl_ca_certs", "ssl_ca_path", "ssl_certfile", "ssl_keyfile"])
def test_a_certificate_that_is_not_there_is_refused_and_not_waited_for(parameter: str) -> None:
    with pytest.raises(ValueError, match=r"the certificates of CELERITY_REDIS_URL \(/no/such\.pem\) cannot be used"):
        connect(read_redis_url(f"rediss://one?{parameter}=/no/such.pem"))


@pytest.mark.parametrize("variable", ["CELERY_BROKER_URL", "CELERY_BROKER_READ_URL", "CELERY_RESULT_BACKEND"])
def test_a_variable_with_which_celery_would_go_elsewhere_is_refused(variable: str) -> None:
    with pytest.raises(ValueError, match=f"{variable} would overrule CELERITY_REDIS_URL"):
        load_settings({variable: "redis://elsewhere"})


def test_the_default_is_this_host() -> None:
    assert Settings().redis == RedisUrl(host="127.0.0.1")
