"""What `celerity up` and `celerity run` do: the one for people, the other for programs."""

import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from stack.log import Log
from stack.plan import read_plan
from stack.process import leashed
from stack.running import LOG_NAME, private_plan, ready_stack, tail
from stack.signals import StopRequested, call_on_signals, raise_on_signals
from stack.stack import POLL_SECONDS, Stack, StackError


def up(environment: Mapping[str, str], *, workers: int, as_json: bool) -> int:
    """Run the stack with its log on stdout until a signal (exit code 0) or the end of a process (its code). As JSON,
    stdout has only where it serves, once it does."""
    log = Log(sys.stderr if as_json else sys.stdout)
    stack = Stack(read_plan(environment, workers=workers), log)
    raise_on_signals()
    try:
        stack.start()
        stack.wait_ready()
        log.write("stack", f"ready: {stack.url}, described at {stack.url}/docs; Ctrl-C stops it")
        if as_json:
            print(json.dumps({"url": stack.url, "docs": f"{stack.url}/docs"}), flush=True)
        while True:
            stack.check()
            time.sleep(POLL_SECONDS)
    except StopRequested as request:
        log.write("stack", f"{request}: stopping; once more to stop without waiting")
        return 0
    except StackError as error:
        log.write("stack", str(error))
        return error.exit_code
    finally:
        call_on_signals(stack.hasten)
        stack.stop()


def run(environment: Mapping[str, str], command: Sequence[str], *, workers: int, log_file: Path | None) -> int:
    """Run `command`, {url} replaced, against a stack of its own, and give its exit code.

    Without DATA_DIR the stack's data are temporary. The stack's log goes to `log_file`, by
    default in the data folder.
    """
    raise_on_signals()
    try:
        with tempfile.TemporaryDirectory(prefix="celerity-") as temporary:
            data_dir = Path(environment.get("DATA_DIR") or temporary)
            plan = private_plan({**environment, "DATA_DIR": str(data_dir)}, workers=workers)
            log_file = log_file or data_dir / LOG_NAME
            with ready_stack(plan, log_file) as stack:
                code = _run_command([part.replace("{url}", stack.url) for part in command], stack)
            if code != 0:
                print(
                    f"the command ended with exit code {code}; the stack's log ends:\n{tail(log_file)}", file=sys.stderr
                )
            return code
    except StopRequested as request:
        return 128 + request.number
    except StackError as error:
        print(error, file=sys.stderr)
        return error.exit_code


def _run_command(command: Sequence[str], stack: Stack) -> int:
    """The command's exit code; it is ended when the stack breaks or is asked to stop."""
    child = subprocess.Popen(leashed(command, signal.SIGTERM))
    try:
        while child.poll() is None:
            stack.check()
            time.sleep(POLL_SECONDS)
    finally:
        if child.poll() is None:
            child.terminate()
            child.wait()
        call_on_signals(stack.hasten)
    return child.returncode if child.returncode >= 0 else 128 - child.returncode
