"""What `celerity up` and `celerity run` do: the one for people, the other for programs."""

import json
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from settings import load_settings
from stack.command import Command, check_exists
from stack.lock import check_unlocked
from stack.log import Log
from stack.plan import read_plan
from stack.restarts import Restarts
from stack.running import private_plan, ready_stack, tail
from stack.signals import StopRequested, call_on_signals, raise_on_signals
from stack.stack import POLL_SECONDS, Stack, StackError
from store.private_files import STACK_LOG


def up(environment: Mapping[str, str], *, workers: int, as_json: bool) -> int:
    """Run the stack with its log on stdout until a signal (exit code 0). A process that ends before the stack is ready
    ends it (with its code); one that ends later is started again (see stack/restarts.py). As JSON, stdout has only
    where it serves, once it does."""
    log = Log(sys.stderr if as_json else sys.stdout)
    # Its port is taken as well, but of the two this is the reason.
    check_unlocked(load_settings(environment).data_dir.resolve())
    stack = Stack(read_plan(environment, workers=workers), log)
    raise_on_signals()
    try:
        stack.start()
        stack.wait_ready()
        log.write("stack", f"ready: {stack.url}, described at {stack.url}/docs; Ctrl-C stops it")
        if as_json:
            print(json.dumps({"url": stack.url, "docs": f"{stack.url}/docs"}), flush=True)
        restarts = Restarts(stack, log)
        while True:
            restarts.look()
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
    default in the data folder. What happens is told on stderr, a line each.
    """
    check_exists(command[0])
    raise_on_signals()
    try:
        with tempfile.TemporaryDirectory(prefix="celerity-") as temporary:
            data_dir = Path(environment.get("DATA_DIR") or temporary)
            plan = private_plan({**environment, "DATA_DIR": str(data_dir)}, workers=workers)
            log_file = log_file or data_dir / STACK_LOG
            _tell(f"starting Valkey, {workers} worker{'s'[: workers - 1]} and the API; their log is {log_file}")
            began = time.monotonic()
            with ready_stack(plan, log_file) as stack:
                _tell(f"ready after {time.monotonic() - began:.0f} s on {stack.url}")
                code = _run_command([part.replace("{url}", stack.url) for part in command], stack)
            if code != 0:
                _tell(f"the command ended with exit code {code}{_end_of_log(log_file, Path(temporary))}")
            return code
    except StopRequested as request:
        print(file=sys.stderr)  # after a bar, or a terminal's ^C
        _tell(f"{request}: the command and the stack have ended")
        return 128 + request.number
    except StackError as error:
        _tell(str(error))
        return error.exit_code


def _run_command(arguments: Sequence[str], stack: Stack) -> int:
    """The command's exit code; it is ended when the stack breaks or is asked to stop."""
    command = Command(arguments)
    try:
        while (code := command.poll()) is None:
            stack.check()
            time.sleep(POLL_SECONDS)
        return code
    finally:
        command.end()
        call_on_signals(stack.hasten)


def _end_of_log(log_file: Path, temporary: Path) -> str:
    """Shown where the file goes with the temporary data."""
    return f"; the stack's log ends:\n{tail(log_file)}" if temporary in log_file.parents else ""


def _tell(line: str) -> None:
    print(f"celerity: {line}", file=sys.stderr, flush=True)
