"""`celerity models check`: which models of this host are served, what they need, and why others are refused."""

from pathlib import Path
from typing import Any

import click

from cli.output import as_json, facts, show, table
from domain.operation import OperationFailedError
from domain.session import BYTES_PER_WEIGHT, LoraConfig
from models.catalog import Catalog, RefusedModelError
from models.folders import has_model_files, model_folders
from models.hub import Hub
from models.inspection import inspect
from settings import load_settings


@click.command()
@click.argument("source", required=False)
@click.option("--rank", type=click.IntRange(min=1), default=LoraConfig().rank, show_default=True, help="Of an adapter.")
@as_json
def check(source: str | None, rank: int, as_json: bool) -> None:
    """Load models on this host's device, and tell what each and an adapter need, or why it is refused.

    SOURCE is a model's folder, a folder of models, or a name; without it all models of this host are checked. The exit
    code is 1 when one is refused.
    """
    folder = Path(source) if source and Path(source).is_dir() else None
    try:
        if folder and has_model_files(folder):
            found = [_checked(folder.resolve().name, folder, rank)]
        else:
            settings = load_settings()
            folders, hub = [folder] if folder else model_folders(settings.models_dir), Hub(settings.hub_models)
            catalog = Catalog(folders, _describe(), hub)
            names = [source] if source and not folder else [*(card.name for card in catalog.cards()), *catalog.refused]
            found = [_checked_of(catalog, name, rank) for name in sorted(names)]
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    if len(found) == 1:
        show(found[0], facts(found[0]), as_json)
    else:
        show(found, table(found, "name", "served", "tokenizer", "reason"), as_json)
    raise SystemExit(any(not each["served"] for each in found))


def _checked_of(catalog: Catalog, name: str, rank: int) -> dict[str, Any]:
    """Raises UnknownModelError for a name that is neither here nor to be had from the hub."""
    try:
        return _checked(name, catalog.directory(name), rank)
    except RefusedModelError as error:
        return {"name": name, "served": False, "reason": error.reason}


def _checked(name: str, directory: Path, rank: int) -> dict[str, Any]:
    try:
        card = inspect(name, directory, _describe())
        tokenizer_fault = _load(directory) or card.tokenizer_fault
    except (ValueError, OperationFailedError) as error:
        return {"name": name, "served": False, "reason": str(error), "directory": str(directory)}
    return {
        "name": name,
        "served": True,
        "directory": str(directory),
        "vocab_size": card.vocab_size,
        "context_length": card.context_length,
        "tokenizer": tokenizer_fault or "ok",
        "file_bytes": sum(file.stat().st_size for file in directory.glob("*.safetensors")),
        "adapted_modules": card.adapted,
        "unadapted_modules": card.left_out,
        "adapter_bytes": BYTES_PER_WEIGHT * rank * card.adapter_width,
    }


# Torch takes a second or two to load, which the other commands need not wait for.
def _describe() -> Any:
    from workers.engine.loading.description import describe

    return describe


def _load(directory: Path) -> str:
    """What is wrong with the model's tokenizer, empty where nothing is.

    Raises:
        ValueError, OperationFailedError: the engine refuses the model, or has no memory for it.
    """
    from workers.engine.engine import Engine
    from workers.engine.loading.model_files import load_tokenizer
    from workers.runtime import engine_config

    engine = Engine(engine_config(load_settings()))
    engine.start()
    try:
        engine.create_adapter("check", directory, LoraConfig(), seed=0).result()
    finally:
        engine.close()
    return load_tokenizer(directory)[1]
