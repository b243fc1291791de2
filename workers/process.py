"""The one runtime of this process. Torch is loaded with it, so not before a worker is one."""

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from settings import Settings
    from workers.runtime import Runtime

_runtime: "Runtime | None" = None


def open_runtime(settings: "Settings") -> "Runtime":
    """Makes this process a worker. Raises ValueError when a setting, or Redis, does not allow it."""
    global _runtime
    # Read once, when torch is loaded; see docs/decisions/0008.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    from workers.runtime import Runtime

    assert _runtime is None, "a process has one runtime"
    runtime = Runtime(settings)
    runtime.start()
    _runtime = runtime
    return runtime


def current() -> "Runtime":
    assert _runtime is not None, "only a worker process has a runtime"
    return _runtime
