"""The one runtime of this process. Torch is loaded with it, so not before a worker is one."""

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from settings import Settings
    from workers.runtime import Runtime

_runtime: "Runtime | None" = None


def open_runtime(settings: "Settings") -> "Runtime":
    """Makes this process a worker."""
    global _runtime
    # Threads of OpenMP that spin while they wait cost little alone and a factor of ten when the API or another
    # worker needs the core. Read once, when torch is loaded.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    from workers.runtime import Runtime

    assert _runtime is None, "a process has one runtime"
    _runtime = Runtime(settings)
    return _runtime


def current() -> "Runtime":
    assert _runtime is not None, "only a worker process has a runtime"
    return _runtime
