"""`celerity sessions`: what is being trained."""

import click

from celerity_client import Client
from cli.output import as_json, facts, show, table
from cli.remote import with_client

limit = click.option("--limit", type=click.IntRange(1, 100), default=20, show_default=True, help="The newest so many.")


@click.group()
def sessions() -> None:
    """Training sessions."""


@sessions.command("list")
@limit
@as_json
@with_client
def list_sessions(client: Client, limit: int, as_json: bool) -> None:
    """List them, the newest first."""
    found = client.sessions(limit)
    show(found, table(found, "session_id", "status", "base_model", "step", "updated_at"), as_json)


@sessions.command("show")
@click.argument("session_id")
@as_json
@with_client
def show_session(client: Client, session_id: str, as_json: bool) -> None:
    """Show one."""
    found = client.session(session_id).read()
    show(found, facts(found), as_json)


@sessions.command()
@click.argument("session_id")
@as_json
@with_client
def stop(client: Client, session_id: str, as_json: bool) -> None:
    """Stop one: what runs finishes, what waits fails, results stay readable."""
    stopped = client.session(session_id).stop()
    show(stopped, facts(stopped), as_json)
