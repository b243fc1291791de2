"""`python -m cli.health`: whether a worker of this host is alive, for whoever watches over a container or a unit.

The store is asked, as the API asks it before it gives a worker sessions. A module of its own, since the command line
takes twice as long to load, and this is run several times a minute.
"""

import socket

import click

from cli.store_access import opened_store


@click.command()
def health() -> None:
    """Ask the store for the heartbeat of a worker of this host. The exit code is 1 when there is none that is younger
    than CELERITY_HEARTBEAT_TIMEOUT."""
    host = socket.gethostname()
    with opened_store(check_access=False) as store:
        here = [worker for worker in store.workers.live() if worker.announcement.host == host]
    if not here:
        raise click.ClickException(f"no worker of {host} is alive")
    for worker in here:
        click.echo(f"{worker.id}: heartbeat {worker.heartbeat_age:.1f} s ago, {worker.session_count} sessions")


if __name__ == "__main__":
    health(prog_name="cli.health")
