"""`make demo`: GRPO on sums (examples/grpo_arithmetic.py) as a program that fits itself to the machine.

The exit code is 0 when the mean reward rose, 1 when it did not, 2 when the server refused or was not there,
130 after Ctrl-C.
"""

import argparse
import contextlib
import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # they take seconds to import on a slow machine, and the first line should not wait for them
    from celerity_client import Session
    from examples.pace import Size

MODEL = "HuggingFaceTB/SmolLM2-135M-Instruct"
GREETING = """\
A 135M model learns one-digit sums by GRPO over the API: replies are sampled, scored and trained on, step by step,
for {:.0f} minutes at the most. Ctrl-C ends it."""
SIZE = ("steps", "questions", "samples", "held_out")
RETRY_SECONDS = 5.0  # with a server that is not there, or that ends as well


def main(options: argparse.Namespace) -> int:
    print(GREETING.format(options.seconds / 60), file=sys.stderr, flush=True)
    from celerity_client import ApiError, Client, OperationFailedError

    try:
        with Client(options.url, options.key, retry_seconds=RETRY_SECONDS) as client:
            client.models()
        with Client(options.url, options.key) as client:
            return run(client.create_session(MODEL, rank=16, alpha=32, dropout=0), options)
    except (ApiError, OperationFailedError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 2


def run(session: "Session", options: argparse.Namespace) -> int:
    """Raises ApiError or OperationFailedError."""
    from celerity_client.progress import Bar
    from examples.grpo_arithmetic import Loop
    from examples.report import report

    began = time.monotonic()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with Bar() as bar:
            loop = Loop(session, options.tokenizer, bar, learning_rate=options.learning_rate, seed=options.seed)
            outcome = loop.run(options.seconds, asked_size(options))
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        print(f"demo: stopped{f'; session {session.id} stays' if options.keep else ''}", file=sys.stderr, flush=True)
        stop_soon(session.id, options)
        return 128 + signal.SIGINT
    stop_soon(session.id, options)
    report(outcome, round(time.monotonic() - began, 1), options.output)
    return 0 if outcome.has_risen else 1


def stop_soon(session_id: str, options: argparse.Namespace) -> None:
    """Unless it is to be kept. After Ctrl-C a server of the demo's own may have ended before."""
    from celerity_client import ApiError, Client

    if not options.keep:
        with Client(options.url, options.key, retry_seconds=RETRY_SECONDS) as client, contextlib.suppress(ApiError):
            client.session(session_id).stop()


def asked_size(options: argparse.Namespace) -> "Size | None":
    """None leaves it to the measurement."""
    from examples.pace import SIZES

    asked = {name: value for name in SIZE if (value := vars(options)[name]) is not None}
    return SIZES[0]._replace(**asked) if asked else None


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--tokenizer", default=MODEL, help="hub id or directory")
    parser.add_argument("--output", type=Path, default=Path("artifacts/demo"))
    parser.add_argument("--key", default=os.environ.get("CELERITY_CLIENT_KEY", ""), help="where the server needs one")
    parser.add_argument("--keep", action="store_true", help="leave the session running, to be looked at")
    parser.add_argument("--seconds", type=float, default=480, help="time from the first reply (default 480)")
    parser.add_argument("--learning-rate", type=float, default=2e-4)
    parser.add_argument("--seed", type=int, default=0)
    for name in SIZE:
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, help="by default what fits into the time")
    return parser


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # as long as there is nothing to clean up
    raise SystemExit(main(parser().parse_args()))
