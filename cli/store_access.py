"""The store of the server beside which a command is run."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import click
import msgspec

from settings import Settings, load_settings
from store.errors import Forbidden, NotFoundError, Unavailable
from store.refusals import RefusedError, sentence
from store.store import Store, open_store


@contextmanager
def opened_store(check_access: bool = True) -> Iterator[Store]:
    """The store, with its refusals and its absence as sentences.

    `check_access` tries all that it may be asked for, which takes some 50 commands.
    """
    try:
        settings = beside_settings()
        store = open_store(settings)
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    try:
        if check_access:
            _check_access(store)
        yield store
    except NotFoundError as error:
        raise click.ClickException(str(error)) from error
    except Forbidden as error:
        raise click.ClickException(f"Redis: {error}; `celerity doctor` says what to grant") from error
    except Unavailable as error:
        raise click.ClickException(f"{sentence(error)} ({error}): {_advice(error)}") from error
    finally:
        store.close()


def _advice(error: Exception) -> str:
    if isinstance(error, RefusedError):
        return "try again when it works"
    return "start the stack, or name its DATA_DIR or CELERITY_REDIS_URL"


def _check_access(store: Store) -> None:
    try:
        store.check_access()
    except ValueError as error:
        raise click.ClickException(str(error)) from error


def beside_settings() -> Settings:
    """The environment's settings; without a Redis of the user's own, the one that the stack in DATA_DIR embeds."""
    settings = load_settings()
    if not os.environ.get("CELERITY_REDIS_URL") and settings.embedded_url_file.exists():
        return msgspec.structs.replace(settings, redis_url=settings.embedded_url_file.read_text())
    return settings
