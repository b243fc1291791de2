"""`python -m stack up` and `python -m stack run -- COMMAND...`"""

import argparse
import os
import sys
from pathlib import Path

from stack import commands

EPILOG = """HOST, PORT, DATA_DIR and every CELERITY_ setting are read from the environment. With
CELERITY_REDIS_URL the stack uses that server instead of an embedded one."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m stack", description="Celerity on this host.", epilog=EPILOG)
    parser.add_argument("--workers", type=int, default=1, help="worker processes (default 1)")
    actions = parser.add_subparsers(dest="action", required=True)
    actions.add_parser("up", help="serve until Ctrl-C")
    run = actions.add_parser("run", help="serve on a free port while a command runs, and exit with its code")
    run.add_argument("--log", type=Path, help="file for the stack's log (default: in the data folder)")
    run.add_argument("command", nargs="+", help="the command; {url} in it becomes the API's address")
    return parser


def main() -> int:
    arguments = _parser().parse_args()
    try:
        if arguments.action == "up":
            return commands.up(os.environ, workers=arguments.workers)
        return commands.run(os.environ, arguments.command, workers=arguments.workers, log_file=arguments.log)
    except ValueError as error:
        print(f"celerity: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
