"""`celerity keys`: make, list and revoke API keys; the running server heeds each change at once."""

import math
from collections.abc import Iterator
from typing import Any

import click
import msgspec

from cli.output import as_json, show
from cli.store_access import opened_store
from domain.api_key import ApiKey, KeyLimits
from domain.limits import LEAST_BODY_LIMIT
from domain.session import SessionStatus
from schemas.operations import rfc3339
from store.store import Store

MOST_NAME_CHARACTERS = 100
ACTIVE = tuple(status for status in SessionStatus if status.is_active)
PAGE = 100


@click.group()
def keys() -> None:
    """API keys, in the Redis of CELERITY_REDIS_URL, or else of the local stack that runs in DATA_DIR.

    Once a key has been made the server needs one with every call, also when all have been revoked.
    """


@keys.command()
@click.option("--name", required=True, help="Whose key it is; for people.")
@click.option("--max-sessions", type=click.IntRange(min=0), help="Most sessions that have not ended.")
@click.option("--max-waiting", type=click.IntRange(min=0), help="Most operations that have not ended.")
@click.option("--rate", type=click.FloatRange(min=0), help="Most requests a second.")
@click.option("--max-body-bytes", type=int, help=f"Most bytes of a request's body, {LEAST_BODY_LIMIT} at least.")
@as_json
def create(name: str, as_json: bool, **limits: Any) -> None:
    """Make a key and show it, this once. A limit that is not given is the server's; 0 is no limit."""
    if not (name.isprintable() and 1 <= len(name) <= MOST_NAME_CHARACTERS):
        raise click.BadParameter(f"must be 1 to {MOST_NAME_CHARACTERS} printable characters", param_hint="--name")
    if limits["rate"] is not None and not math.isfinite(limits["rate"]):
        raise click.BadParameter("must be a number", param_hint="--rate")
    if limits["max_body_bytes"] and limits["max_body_bytes"] < LEAST_BODY_LIMIT:
        raise click.BadParameter(f"must be at least {LEAST_BODY_LIMIT}, or 0", param_hint="--max-body-bytes")
    with opened_store() as store:
        made, key = store.api_keys.create(name, KeyLimits(**limits))
    show({**view(made), "key": key}, [line(made), key], as_json)


@keys.command("list")
@as_json
def list_keys(as_json: bool) -> None:
    """List every key that was made, the oldest first; never the keys themselves."""
    with opened_store() as store:
        found = store.api_keys.list()
    show([view(key) for key in found], map(line, found), as_json)


@keys.command()
@click.argument("key_id")
@as_json
def revoke(key_id: str, as_json: bool) -> None:
    """Refuse a key from now on. Its sessions run on; see stop-sessions."""
    with opened_store() as store:
        revoked = store.api_keys.revoke(key_id)
    show(view(revoked), [line(revoked)], as_json)


@keys.command("stop-sessions")
@click.argument("key_id")
@as_json
def stop_sessions(key_id: str, as_json: bool) -> None:
    """Stop the sessions of a key, or those of `anonymous`, made when the server had no keys."""
    with opened_store() as store:
        stopped = [session_id for status in ACTIVE for session_id in _stop_all(store, key_id, status)]
    show(stopped, stopped, as_json)


def view(key: ApiKey) -> dict[str, Any]:
    """What can be told of a key, as JSON."""
    revoked_at = None if key.revoked_at is None else rfc3339(key.revoked_at)
    named = {"id": key.id, "name": key.name, "created_at": rfc3339(key.created_at), "revoked_at": revoked_at}
    return {**named, **msgspec.structs.asdict(key.limits)}


def line(key: ApiKey) -> str:
    """The same in a line for people."""
    limits = [f"{name} {value:.15g}" for name, value in msgspec.structs.asdict(key.limits).items() if value is not None]
    revoked = [] if key.revoked_at is None else [f"revoked {rfc3339(key.revoked_at)}"]
    return "  ".join([key.id, f"created {rfc3339(key.created_at)}", *revoked, *limits, key.name])


def _stop_all(store: Store, owner: str, status: SessionStatus) -> Iterator[str]:
    while page := store.sessions.list(owner, status, PAGE, 0):
        for session in page:
            store.sessions.stop(session.id)
            yield session.id
