"""`celerity worker` and `celerity api`: one process of a server whose parts are on several hosts."""

import os

import click

from cli.output import as_json, show
from settings import load_settings
from stack import services
from stack.process import ROOT


@click.command()
def worker() -> None:
    """Run a worker, which owns one device. CELERITY_REDIS_URL names the server's Redis."""
    _check_settings()
    _become(services.worker_command())


@click.command()
@click.option("--bind", default="127.0.0.1:8000", show_default=True, help="Address and port to listen on.")
@as_json
def api(bind: str, as_json: bool) -> None:
    """Serve the API. CELERITY_REDIS_URL names the server's Redis. With --json, a line of it says where; the log is on
    standard error."""
    _check_settings()
    if as_json:
        show({"url": f"http://{bind}"}, [], as_json)
    _become(services.api_command(bind))


def _check_settings() -> None:
    """Here, where a wrong one is a sentence."""
    try:
        load_settings()
    except ValueError as error:
        raise click.ClickException(str(error)) from error


def _become(command: list[str]) -> None:
    """This process is the service from now on, so that signals reach it."""
    os.chdir(ROOT)
    os.execv(command[0], command)
