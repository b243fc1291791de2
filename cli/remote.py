"""The API that a command speaks to."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from celerity_client import ApiError, Client

# Somebody waits at a terminal.
RETRY_SECONDS = 5.0

Command = Callable[..., Any]


def with_client(command: Command) -> Command:
    """Gives a command the client as its first argument, and its refusals as sentences."""

    @click.option("--url", envvar="CELERITY_CLIENT_URL", default="http://127.0.0.1:8000", show_default=True,
                  show_envvar=True, help="The server.")  # fmt: skip
    @click.option("--key", envvar="CELERITY_CLIENT_KEY", default="", show_envvar=True, help="An API key.")
    @wraps(command)
    def wrapper(*arguments: Any, url: str, key: str, **options: Any) -> Any:
        with Client(url, key, retry_seconds=RETRY_SECONDS) as client:
            try:
                return command(client, *arguments, **options)
            except ApiError as error:
                raise click.ClickException(str(error)) from error

    return wrapper
