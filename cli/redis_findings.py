"""What `celerity doctor` finds of Redis, for each of its two users: the store and Celery's broker."""

import os
from collections.abc import Iterator

from kombu.exceptions import OperationalError
from obstore.store import MemoryStore

from cli.finding import Finding
from settings import Settings
from store.errors import Unavailable
from store.objects import Objects
from store.refusals import RefusedError, sentence
from store.store import Store, open_store

RULE = "docs/operations.md says what Redis must allow and how its URL is written"


def redis_findings(settings: Settings) -> Iterator[Finding]:
    try:
        # Its objects are another finding.
        store = open_store(settings, Objects(MemoryStore()))
    except ValueError as error:
        yield Finding("Redis", str(error), "correct CELERITY_REDIS_URL")
        return
    try:
        yield from _server(store)
        yield from _broker(store)
    except RefusedError as error:
        yield Finding("Redis", f"{sentence(error)} ({error})", "everything waits until it works")
    except Unavailable as error:
        where = "`celerity up` brings one of its own" if not os.environ.get("CELERITY_REDIS_URL") else "start it"
        yield Finding("Redis", f"not reached ({error})", f"{where}, or name another in CELERITY_REDIS_URL")
    except ValueError as error:
        yield Finding("Redis", str(error), RULE)
    finally:
        store.close()


def _server(store: Store) -> Iterator[Finding]:
    """Raises ValueError when it does not let this user work."""
    store.check_access()
    yield Finding("Redis", "reached")
    policy, is_durable = store.eviction_policy(), store.is_durable()
    evicts = "set maxmemory-policy to noeviction: it may drop what was accepted"
    yield Finding("Redis memory", policy, "" if policy == "noeviction" else evicts)
    forgets = "set appendonly to yes: a restart would lose everything"
    yield Finding("Redis durability", "append-only file" if is_durable else "none", "" if is_durable else forgets)
    live = store.workers.live()
    yield Finding(
        "workers", f"{len(live)} announced, each after a task of its own had come back" if live else "none yet"
    )


def _broker(store: Store) -> Iterator[Finding]:
    try:
        store.check_broker()
    except (OperationalError, *Unavailable) as error:
        yield Finding("broker", f"not reached ({error})", "tasks would not reach workers: see CELERITY_REDIS_URL")
    else:
        yield Finding("broker", "reached")
