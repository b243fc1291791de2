"""`celerity models`: the base models of a server, and of this host."""

import shutil
from pathlib import Path

import click

from celerity_client import Client
from cli.model_check import check
from cli.output import as_json, show, table
from cli.remote import with_client
from domain.operation import OperationFailedError
from models.files import unread
from models.hub import Hub, UnknownModelError
from models.inspection import inspect
from settings import load_settings

RESTART = "Workers serve it after a restart."


@click.group()
def models() -> None:
    """Base models."""


@models.command("list")
@as_json
@with_client
def list_models(client: Client, as_json: bool) -> None:
    """List those that the server's live workers serve."""
    found = client.models()
    show(found, table(found, "id", "vocab_size", "context_length", "unadapted_modules"), as_json)


@models.command()
@click.argument("source")
@click.option("--name", help="What a folder's model is to be called; the folder's own name unless given.")
@as_json
def add(source: str, name: str | None, as_json: bool) -> None:
    """Add SOURCE, a folder to be copied into CELERITY_MODELS_DIR or a hub id to be fetched, on this host."""
    folder = Path(source)
    directory = _copied(folder, name or folder.name) if folder.is_dir() else _fetched(source)
    show({"directory": str(directory)}, [f"{directory}  {RESTART}"], as_json)


def _copied(folder: Path, name: str) -> Path:
    into = load_settings().models_dir
    if into is None:
        raise click.ClickException("set CELERITY_MODELS_DIR to the folder where models are to lie")
    target = into / name
    if not target.resolve().is_relative_to(into.resolve()) or target.exists():
        raise click.ClickException(f"{target} is there already, or outside of {into}: choose another --name")
    # Torch takes a second or two to load, which the other commands need not wait for.
    from workers.engine.loading.description import describe

    try:
        inspect(name, folder, describe)
    except ValueError as error:
        raise click.ClickException(f"{folder} is refused: {error}") from error
    shutil.copytree(folder, target, ignore=unread)
    return target


def _fetched(name: str) -> Path:
    """By whoever runs the host, who need not ask whether it may be fetched."""
    try:
        return Hub(allowed=("*",), disk_floor=load_settings().disk_floor_bytes).directory(name)
    except UnknownModelError as error:
        raise click.ClickException(f"{error}, and there is no such folder") from error
    except OperationFailedError as error:
        raise click.ClickException(str(error)) from error


models.add_command(check)
