"""`celerity ops`: what a session was asked to do."""

import click

from celerity_client import Client
from cli.output import as_json, facts, show, table
from cli.remote import with_client
from cli.sessions import limit


@click.group()
def ops() -> None:
    """Operations of a session."""


@ops.command("list")
@click.argument("session_id")
@limit
@as_json
@with_client
def list_operations(client: Client, session_id: str, limit: int, as_json: bool) -> None:
    """List them with their times, the newest first."""
    found = client.operations(session_id, limit)
    show(found, table(found, "operation_id", "kind", "status", "created_at", "started_at", "ended_at"), as_json)


@ops.command()
@click.argument("session_id")
@click.argument("operation_id")
@as_json
@with_client
def cancel(client: Client, session_id: str, operation_id: str, as_json: bool) -> None:
    """Cancel one that has not started."""
    cancelled = client.cancel(session_id, operation_id)
    show(cancelled, facts(cancelled), as_json)
