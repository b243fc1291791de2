"""One log format for every process."""

import logging

FORMAT = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"


def configure_logging(level: str, line: str = FORMAT, *filters: logging.Filter) -> None:
    """Logs to stderr from `level` up. `filters` see every record, and may give it what `line` shows beyond FORMAT.

    Raises ValueError for a level that logging does not know.
    """
    handler = logging.StreamHandler()
    for each in filters:
        handler.addFilter(each)
    logging.basicConfig(format=line, level=level.upper(), handlers=[handler], force=True)
    # Celery's lines for each message received and task ended; workers/backend.py says it in our words.
    logging.getLogger("celery.worker.strategy").setLevel(logging.WARNING)
    logging.getLogger("celery.app.trace").setLevel(logging.WARNING)
    logging.getLogger("httpx2").setLevel(logging.WARNING)
