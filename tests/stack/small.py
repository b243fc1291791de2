"""Small commands in the place of the real services."""

import os
import sys

from stack.process import Service

SLEEP = "import time; time.sleep(600)"


def service(name: str, code: str) -> Service:
    """Python code as a service."""
    return Service(name, [sys.executable, "-c", code], dict(os.environ))
