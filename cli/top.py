"""`celerity top`: sessions and workers, live in the terminal."""

import time

import click

from celerity_client import Client
from cli.output import as_json, show, table
from cli.remote import with_client


@click.command()
@click.option("--seconds", type=click.FloatRange(min=0.2), default=2.0, show_default=True, help="Between two looks.")
@click.option("--once", is_flag=True, help="Look once.")
@as_json
@with_client
def top(client: Client, seconds: float, once: bool, as_json: bool) -> None:
    """Watch sessions and workers until Ctrl-C. With --json, a line of it for each look."""
    while True:
        seen = {"sessions": client.sessions(), "workers": client.workers()}
        workers = table(seen["workers"], "worker_id", "device", "session_count", "resident_count", "free_bytes")
        sessions = table(seen["sessions"], "session_id", "status", "base_model", "step", "updated_at")
        if not (once or as_json):
            click.clear()
        show(seen, [*workers, "", *sessions], as_json)
        if once:
            return
        time.sleep(seconds)
