"""`celerity models`: the base models of a server, and of this host."""

import shutil
from pathlib import Path
from typing import Any

import click

from celerity.output import as_json, facts, show, table
from celerity.remote import with_client
from client import Client
from contract.operation import OperationFailedError
from contract.session import BYTES_PER_WEIGHT, LoraConfig
from models.catalog import Catalog
from models.config import read_card
from models.folders import model_folders
from models.hub import UnknownModelError, hub_directory
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
    show(found, table(found, "id", "vocab_size", "context_length"), as_json)


@models.command()
@click.argument("source")
@click.option("--name", help="What a folder's model is to be called; the folder's own name unless given.")
@as_json
def add(source: str, name: str | None, as_json: bool) -> None:
    """Add SOURCE, a folder to be copied into CELERITY_MODELS_DIR or a hub id to be fetched, on this host."""
    folder = Path(source)
    directory = _copied(folder, name or folder.name) if folder.is_dir() else _fetched(source)
    show({"directory": str(directory)}, [f"{directory}  {RESTART}"], as_json)


@models.command()
@click.argument("name")
@click.option("--rank", type=click.IntRange(min=1), default=LoraConfig().rank, show_default=True, help="Of an adapter.")
@as_json
def check(name: str, rank: int, as_json: bool) -> None:
    """Load a model on this host's device, and tell what it and an adapter need."""
    settings = load_settings()
    try:
        directory = Catalog(model_folders(settings.models_dir)).directory(name)
        card = read_card(name, directory / "config.json", has_tokenizer=(directory / "tokenizer.json").is_file())
        _load(directory)
    except (ValueError, OperationFailedError) as error:
        raise click.ClickException(str(error)) from error
    told = {
        "name": name,
        "directory": str(directory),
        "vocab_size": card.vocab_size,
        "context_length": card.context_length,
        "has_tokenizer": card.has_tokenizer,
        "file_bytes": sum(file.stat().st_size for file in directory.glob("*.safetensors")),
        "adapter_bytes": BYTES_PER_WEIGHT * rank * card.adapter_width,
    }
    show(told, facts(told), as_json)


def _copied(folder: Path, name: str) -> Path:
    into = load_settings().models_dir
    if into is None:
        raise click.ClickException("set CELERITY_MODELS_DIR to the folder where models are to lie")
    target = into / name
    if not target.resolve().is_relative_to(into.resolve()) or target.exists():
        raise click.ClickException(f"{target} is there already, or outside of {into}: choose another --name")
    try:
        read_card(name, folder / "config.json", has_tokenizer=False)
    except ValueError as error:
        raise click.ClickException(f"{folder} cannot be served: {error}") from error
    shutil.copytree(folder, target)
    return target


def _fetched(name: str) -> Path:
    try:
        return hub_directory(name)
    except UnknownModelError as error:
        raise click.ClickException(f"{error}, and there is no such folder") from error


def _load(directory: Path) -> None:
    """Raises ValueError or OperationFailedError when the engine does not take it."""
    # Torch takes a second or two to load, which the other commands need not wait for.
    from workers.engine.engine import Engine
    from workers.runtime import engine_config

    engine = Engine(engine_config(load_settings()))
    engine.start()
    try:
        loaded: Any = engine.create_adapter("check", directory, LoraConfig(), seed=0)
        loaded.result()
    finally:
        engine.close()
