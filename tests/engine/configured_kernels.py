"""The kernels that this run of the suite is configured for by CELERITY_KERNELS: ours, or torch's operations."""

import os

from workers.engine.kernels.kernel import choose

KERNELS = os.environ["CELERITY_KERNELS"]


def choose_configured() -> None:
    """After a test that chose others."""
    choose(KERNELS)
