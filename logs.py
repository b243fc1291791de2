"""One log format for every process."""

import logging

FORMAT = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"


def configure_logging(level: str) -> None:
    """Logs to stderr from `level` up. Raises ValueError for a level that logging does not know."""
    logging.basicConfig(format=FORMAT, level=level.upper(), force=True)
    # One line per message received would drown what matters; tasks still log how they ended.
    logging.getLogger("celery.worker.strategy").setLevel(logging.WARNING)
    logging.getLogger("httpx").setLevel(logging.WARNING)
