"""One log format for every process."""

import logging

FORMAT = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"


def configure_logging(level: str) -> None:
    """Logs to stderr from `level` up. Raises ValueError for a level that logging does not know."""
    logging.basicConfig(format=FORMAT, level=level.upper(), force=True)
    # Celery's lines for each message received and task ended; workers/backend.py says it in our words.
    logging.getLogger("celery.worker.strategy").setLevel(logging.WARNING)
    logging.getLogger("celery.app.trace").setLevel(logging.WARNING)
    logging.getLogger("httpx2").setLevel(logging.WARNING)
