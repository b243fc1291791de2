"""What `celerity doctor` finds of Redis, for each of those who speak to it: the store, Celery's broker, its backend."""

import os
from collections.abc import Callable, Iterator

from celery import Celery
from kombu.exceptions import OperationalError
from obstore.store import MemoryStore

from cli.finding import Finding
from settings import Settings
from store.errors import Unavailable
from store.objects import Objects
from store.refusals import RefusedError, sentence
from store.store import Store, open_store

FAILS = "tasks would not reach workers, or fail: see CELERITY_REDIS_URL"
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
        yield from _celery(store, settings)
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


def _celery(store: Store, settings: Settings) -> Iterator[Finding]:
    """Each as a worker sets it up."""
    # Loaded with it, and needed by no other command.
    from workers.backend import backend_settings

    celery = Celery("celerity", set_as_current=False)
    celery.conf.update(backend_settings(settings.redis))
    checks: dict[str, Callable[[], object]] = {
        "broker": store.check_broker,
        "result backend": lambda: celery.backend.client.ping(),
    }
    for what, check in checks.items():
        try:
            check()
        except (OperationalError, *Unavailable) as error:
            yield Finding(what, f"not reached ({error})", FAILS)
        else:
            yield Finding(what, "reached")
