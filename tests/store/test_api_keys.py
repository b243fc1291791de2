"""API keys: kept as digests, good until revoked, each with a bucket of requests."""

import hashlib
from typing import Any

import pytest

from domain.api_key import ANONYMOUS, KeyLimits
from store import keys
from store.errors import LimitReachedError, NotFoundError
from tests.store.conftest import Bench, with_settings

NO_LIMITS = KeyLimits()


def bucket(bench: Bench, owner: str, field: str) -> float:
    value: Any = bench.redis.hget(keys.bucket(owner), field)
    return float(value)


def test_only_a_digest_of_a_key_is_kept(bench: Bench) -> None:
    made, key = bench.store.api_keys.create("alice", NO_LIMITS)
    assert made.id == hashlib.sha256(key.encode()).hexdigest()[:16]
    kept = [name for name in bench.redis.scan_iter() if b"api_key:" in name]
    assert len(kept) == 1
    record = bench.redis.hgetall(kept[0])
    assert record[b"digest"] == hashlib.sha256(key.encode()).hexdigest().encode()
    assert not any(key.encode() in value or b"celerity_" in value for value in record.values())


def test_keys_are_random_and_long(bench: Bench) -> None:
    made = {bench.store.api_keys.create("alice", NO_LIMITS)[1] for _ in range(20)}
    assert len(made) == 20
    assert min(len(key.removeprefix("celerity_")) for key in made) >= 43, "256 bits in base64"


def test_a_key_reads_back_with_its_own_limits_where_it_has_them(bench: Bench) -> None:
    limits = KeyLimits(max_sessions=0, rate=0.5, max_body_bytes=100_000)
    made, _ = bench.store.api_keys.create("älice & co", limits)
    other, _ = bench.store.api_keys.create("bob", NO_LIMITS)
    assert (made.name, made.limits, made.revoked_at) == ("älice & co", limits, None)
    assert bench.store.api_keys.list() == [made, other]


def test_without_keys_everyone_is_one_owner_and_the_first_key_ends_that(bench: Bench) -> None:
    admit = bench.store.api_keys.admit
    assert admit("", ()) == admit("anything", ()) == ANONYMOUS
    made, key = bench.store.api_keys.create("alice", NO_LIMITS)
    assert (admit(key, ()), admit("", ()), admit(key + "x", ())) == (made.id, None, None)


def test_the_whole_digest_counts_and_not_only_what_the_id_shows_of_it(bench: Bench) -> None:
    made, key = bench.store.api_keys.create("alice", NO_LIMITS)
    digest = hashlib.sha256(key.encode()).hexdigest()
    bench.redis.hset(keys.api_key(made.id), "digest", digest[:16] + digest[16:][::-1])
    assert bench.store.api_keys.admit(key, ()) is None


def test_a_revoked_key_is_refused_and_the_last_one_opens_nothing(bench: Bench) -> None:
    made, key = bench.store.api_keys.create("alice", NO_LIMITS)
    revoked = bench.store.api_keys.revoke(made.id)
    assert revoked.revoked_at is not None
    assert bench.store.api_keys.revoke(made.id) == revoked
    assert bench.store.api_keys.admit(key, ()) is None
    assert bench.store.api_keys.admit("", ()) is None
    with pytest.raises(NotFoundError):
        bench.store.api_keys.revoke("0123456789abcdef")


def test_a_key_of_the_settings_is_good_beside_stored_ones(bench: Bench) -> None:
    static = ("from-the-settings", "another")
    assert bench.store.api_keys.admit("", static) is None
    owner = bench.store.api_keys.admit("from-the-settings", static)
    assert owner == hashlib.sha256(b"from-the-settings").hexdigest()[:16]
    made, key = bench.store.api_keys.create("alice", NO_LIMITS)
    assert bench.store.api_keys.admit(key, static) == made.id
    assert bench.store.api_keys.admit("another", static) not in (None, owner, made.id)


def test_a_body_has_the_limit_of_its_key_or_else_the_servers_for_keys(bench: Bench) -> None:
    strict = with_settings(bench, max_body_bytes_per_key=70_000).api_keys
    limits = (NO_LIMITS, KeyLimits(max_body_bytes=90_000), KeyLimits(max_body_bytes=0))
    made = [strict.create("alice", each)[0].id for each in limits]
    assert [strict.max_body_bytes(owner) for owner in made] == [70_000, 90_000, 0]
    assert (strict.max_body_bytes(ANONYMOUS), bench.store.api_keys.max_body_bytes(ANONYMOUS)) == (70_000, 0)


def test_a_bucket_that_is_empty_says_when_to_come_again(bench: Bench) -> None:
    _, key = bench.store.api_keys.create("alice", KeyLimits(rate=0.01))
    bench.store.api_keys.admit(key, ())
    with pytest.raises(LimitReachedError, match=r"more than 0\.01 requests a second") as refused:
        bench.store.api_keys.admit(key, ())
    assert 50 <= refused.value.retry_after <= 100


def test_a_bucket_holds_a_seconds_worth_however_long_it_was_left(bench: Bench) -> None:
    made, key = bench.store.api_keys.create("alice", KeyLimits(rate=3))
    for _ in range(3):
        bench.store.api_keys.admit(key, ())
    bench.redis.hset(keys.bucket(made.id), mapping={"tokens": "0", "at": "1.0"})
    bench.store.api_keys.admit(key, ())
    assert bucket(bench, made.id, "tokens") == 2.0


def test_a_bucket_fills_with_time_and_a_clock_that_goes_back_empties_nothing(bench: Bench) -> None:
    made, key = bench.store.api_keys.create("alice", KeyLimits(rate=0.001))
    bench.store.api_keys.admit(key, ())
    later = bucket(bench, made.id, "at") - 1000.5
    bench.redis.hset(keys.bucket(made.id), "at", later)
    assert bench.store.api_keys.admit(key, ()) == made.id
    bench.redis.hset(keys.bucket(made.id), mapping={"tokens": "1", "at": later + 1e6})
    assert bench.store.api_keys.admit(key, ()) == made.id


def test_buckets_are_each_owners_own_and_the_default_is_the_servers(bench: Bench) -> None:
    slow = with_settings(bench, max_rate_per_key=0.001).api_keys
    keys_made = [slow.create(name, NO_LIMITS)[1] for name in ("alice", "bob")]
    assert len({slow.admit(key, ()) for key in keys_made}) == 2
    with pytest.raises(LimitReachedError):
        slow.admit(keys_made[0], ())
    _, unlimited = slow.create("carol", KeyLimits(rate=0))
    assert len({slow.admit(unlimited, ()) for _ in range(20)}) == 1
