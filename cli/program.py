"""All commands under one name: see --help of each."""

import click

from cli.api_keys import keys
from cli.checkpoints import checkpoints
from cli.doctor import doctor
from cli.models import models
from cli.ops import ops
from cli.serving import api, worker
from cli.sessions import sessions
from cli.top import top
from cli.up import run, up


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option("0.1.0", prog_name="celerity")
def celerity() -> None:
    """A self-hosted RL training API.

    up, worker and api run a server, with the CELERITY_ settings of the environment; keys speaks to its Redis.
    sessions, ops, checkpoints, models and top speak to the API at --url, with an API key where the server has any.
    """


for command in (up, run, worker, api, keys, sessions, ops, checkpoints, models, top, doctor):
    celerity.add_command(command)
