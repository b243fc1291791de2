"""`python -m app.keys`: make, list and revoke API keys; the running server heeds each change at once."""

import math
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import click
import msgspec

from app.answers import write
from contract.api_key import ApiKey, KeyLimits
from contract.session import SessionStatus
from schemas.operations import rfc3339
from settings import Settings, load_settings
from store.errors import NotFoundError, Unavailable
from store.store import Store, open_store

MOST_NAME_CHARACTERS = 100
ACTIVE = (SessionStatus.CREATING, SessionStatus.RUNNING)
PAGE = 100

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


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
@as_json
def create(name: str, as_json: bool, **limits: Any) -> None:
    """Make a key and show it, this once. A limit that is not given is the server's; 0 is no limit."""
    if not (name.isprintable() and 1 <= len(name) <= MOST_NAME_CHARACTERS):
        raise click.BadParameter(f"must be 1 to {MOST_NAME_CHARACTERS} printable characters", param_hint="--name")
    if limits["rate"] is not None and not math.isfinite(limits["rate"]):
        raise click.BadParameter("must be a number", param_hint="--rate")
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


@contextmanager
def opened_store() -> Iterator[Store]:
    """The store, with its refusals and its absence as sentences."""
    try:
        settings = _settings()
        store = open_store(settings)
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    try:
        yield store
    except NotFoundError as error:
        raise click.ClickException(str(error)) from error
    except Unavailable as error:
        raise click.ClickException(
            f"Redis cannot be reached ({error}): start the stack, or name its DATA_DIR or CELERITY_REDIS_URL"
        ) from error
    finally:
        store.close()


def show(value: Any, lines: Iterable[str], as_json: bool) -> None:
    for each in [write(value)] if as_json else lines:
        click.echo(each)


def view(key: ApiKey) -> dict[str, Any]:
    """What can be told of a key, as JSON."""
    revoked_at = None if key.revoked_at is None else rfc3339(key.revoked_at)
    named = {"id": key.id, "name": key.name, "created_at": rfc3339(key.created_at), "revoked_at": revoked_at}
    return {**named, **msgspec.structs.asdict(key.limits)}


def line(key: ApiKey) -> str:
    """The same in a line for people."""
    limits = [f"{name} {value:g}" for name, value in msgspec.structs.asdict(key.limits).items() if value is not None]
    revoked = [] if key.revoked_at is None else [f"revoked {rfc3339(key.revoked_at)}"]
    return "  ".join([key.id, f"created {rfc3339(key.created_at)}", *revoked, *limits, key.name])


def _settings() -> Settings:
    """The environment's settings; without a Redis of the user's own, the one that the stack in DATA_DIR embeds."""
    settings = load_settings()
    if not os.environ.get("CELERITY_REDIS_URL") and settings.embedded_url_file.exists():
        return msgspec.structs.replace(settings, redis_url=settings.embedded_url_file.read_text())
    return settings


def _stop_all(store: Store, owner: str, status: SessionStatus) -> Iterator[str]:
    while page := store.sessions.list(owner, status, PAGE, 0):
        for session in page:
            store.sessions.stop(session.id)
            yield session.id


if __name__ == "__main__":
    keys(prog_name="python -m app.keys")
