"""The kernels that a run of the suite is about: ours, or torch's operations under CELERITY_KERNELS=torch."""

import os

from workers.engine.kernels.kernel import choose

KERNELS = os.environ["CELERITY_KERNELS"]


def choose_usual() -> None:
    """After a test that chose others."""
    choose(KERNELS)
