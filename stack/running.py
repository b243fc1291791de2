"""A stack for as long as a block of code runs: what tests, the demo and benchmarks use."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from stack.address import free_port
from stack.log import Log
from stack.plan import Plan, read_plan
from stack.signals import StopRequested
from stack.stack import READY_SECONDS, Stack, StackError
from store.private_files import STACK_LOG, make_folder, open_private

TAIL_LINES = 40


@contextmanager
def running_stack(
    data_dir: Path,
    models_dir: Path | None = None,
    settings: Mapping[str, str] | None = None,
    *,
    workers: int = 1,
    ready_seconds: float = READY_SECONDS,
) -> Iterator[Stack]:
    """A ready stack on a free port of 127.0.0.1, with a log in `data_dir`/stack.log.

    The CELERITY_ settings of this process do not reach it; `settings` do. On the same `data_dir`
    a later stack goes on where this one ended.

    Raises:
        ValueError: a setting is wrong, another stack runs in `data_dir`, or that cannot be written.
        StackError: it did not get ready, or the block found it broken; the message ends with the log's last lines.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CELERITY_")}
    environment |= {"DATA_DIR": str(data_dir), **(settings or {})}
    if models_dir is not None:
        environment["CELERITY_MODELS_DIR"] = str(models_dir)
    with ready_stack(private_plan(environment, workers=workers), data_dir / STACK_LOG, ready_seconds) as stack:
        yield stack


def private_plan(environment: Mapping[str, str], *, workers: int) -> Plan:
    """A plan on a free port of this host alone, whatever HOST and PORT say."""
    return read_plan({**environment, "HOST": "127.0.0.1", "PORT": str(free_port())}, workers=workers)


@contextmanager
def ready_stack(plan: Plan, log_file: Path, ready_seconds: float = READY_SECONDS) -> Iterator[Stack]:
    """The stack of `plan`, once ready; its log is appended to `log_file`. A StopRequested does not wait for what runs.

    Raises:
        ValueError, StackError: as `running_stack`.
    """
    with _opened(log_file) as output:
        stack = Stack(plan, Log(output))
        try:
            stack.start()
            stack.wait_ready(ready_seconds)
            yield stack
        except StackError as error:
            raise StackError(f"{error}; the log ends:\n{tail(log_file)}", error.exit_code) from error
        except StopRequested:
            stack.stop_now()
            raise
        finally:
            stack.stop()


def _opened(log_file: Path) -> TextIO:
    try:
        make_folder(log_file.parent)
        return open(log_file, "a", encoding="utf-8", opener=open_private)
    except OSError as error:
        raise ValueError(f"the log {log_file} cannot be written: {error.strerror}") from error


def tail(log_file: Path) -> str:
    return "\n".join(log_file.read_text(encoding="utf-8").splitlines()[-TAIL_LINES:])
