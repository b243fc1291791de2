"""`celerity up` and `celerity run`: the whole server on this host."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import click

from cli.output import as_json
from stack import commands

ENVIRONMENT = """HOST, PORT, DATA_DIR and every CELERITY_ setting are read from the environment. With
CELERITY_REDIS_URL the stack uses that server instead of an embedded one."""

workers = click.option("--workers", type=click.IntRange(min=1), default=1, show_default=True, help="Worker processes.")


@click.command(epilog=ENVIRONMENT)
@workers
@as_json
def up(workers: int, as_json: bool) -> None:
    """Serve until Ctrl-C: Valkey, workers and the API, each of which is started again when it dies. With --json, a line
    of it says where, once the server is ready; the log is on standard error."""
    _end(lambda: commands.up(os.environ, workers=workers, as_json=as_json))


@click.command(epilog=ENVIRONMENT, context_settings={"ignore_unknown_options": True})
@workers
@click.option("--log", type=click.Path(path_type=Path), help="File for the stack's log (default: in the data folder).")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def run(workers: int, log: Path | None, command: tuple[str, ...]) -> None:
    """Serve on a free port while COMMAND runs, and exit with its code. {url} in it becomes the API's address."""
    _end(lambda: commands.run(os.environ, command, workers=workers, log_file=log))


def _end(serve: Callable[[], int]) -> NoReturn:
    """Serves, and ends with the exit code; what the environment asks for in vain is a sentence and a 2."""
    try:
        code = serve()
    except ValueError as error:
        click.echo(f"celerity: {error}", err=True)
        code = 2
    raise SystemExit(code)
