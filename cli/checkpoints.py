"""`celerity checkpoints`: what was kept of sessions."""

from pathlib import Path

import click
import httpx2

from celerity_client import Client, OperationFailedError
from cli.output import as_json, facts, show, table
from cli.remote import with_client
from cli.sessions import limit


@click.group()
def checkpoints() -> None:
    """Checkpoints."""


@checkpoints.command("list")
@limit
@as_json
@with_client
def list_checkpoints(client: Client, limit: int, as_json: bool) -> None:
    """List them, the newest first."""
    found = client.checkpoints(limit)
    show(found, table(found, "id", "kind", "model_name", "step", "created_at"), as_json)


@checkpoints.command()
@click.argument("session_id")
@click.option("--kind", type=click.Choice(["training", "inference"]), default="training", show_default=True)
@as_json
@with_client
def save(client: Client, session_id: str, kind: str, as_json: bool) -> None:
    """Save one of a session, and wait for it."""
    try:
        saved = client.session(session_id).save(kind).result()
    except OperationFailedError as error:
        raise click.ClickException(str(error)) from error
    made = {"checkpoint_id": saved.checkpoint_id, "model_name": saved.model_name}
    show(made, facts(made), as_json)


@checkpoints.command()
@click.argument("checkpoint_id")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option("--variant", type=click.Choice(["adapter", "merged"]), default="adapter", show_default=True)
@as_json
@with_client
def download(client: Client, checkpoint_id: str, folder: Path, variant: str, as_json: bool) -> None:
    """Download an inference checkpoint's files into FOLDER, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for file in client.files(checkpoint_id, variant):
        # Only the last part: a name from elsewhere must not lead out of the folder.
        path = folder / Path(file["filename"]).name
        _fetch(file["url"], path)
        paths.append(str(path))
    show(paths, paths, as_json)


@checkpoints.command()
@click.argument("checkpoint_id")
@click.confirmation_option(prompt="Delete the checkpoint and its files?")
@as_json
@with_client
def delete(client: Client, checkpoint_id: str, as_json: bool) -> None:
    """Delete one."""
    client.delete_checkpoint(checkpoint_id)
    show({"deleted": checkpoint_id}, [f"deleted {checkpoint_id}"], as_json)


def _fetch(url: str, path: Path) -> None:
    """Whole, or not at all."""
    part = path.with_name(path.name + ".part")
    try:
        with httpx2.stream("GET", url, timeout=60.0) as answer, part.open("wb") as file:
            answer.raise_for_status()
            for chunk in answer.iter_bytes():
                file.write(chunk)
        part.replace(path)
    except httpx2.HTTPError as error:
        raise click.ClickException(f"{path.name} did not arrive: {error}") from error
    finally:
        part.unlink(missing_ok=True)
