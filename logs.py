"""One log format for every process: lines for people, or JSON for machines."""

import logging
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec

FORMAT = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"
# What a record may carry beside its message, by `extra` or from a filter.
IDS = ("request_id", "session_id", "operation_id")
NO_ID = "-"


def configure_logging(
    level: str, line: str = FORMAT, *filters: logging.Filter, form: Literal["text", "json"] = "text"
) -> None:
    """Logs to stderr from `level` up. `filters` see every record, and may give it what `line` shows beyond FORMAT.

    Raises ValueError for a level that logging does not know.
    """
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if form == "json" else logging.Formatter(line))
    for each in filters:
        handler.addFilter(each)
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    # Celery's lines for each message received and task ended; workers/backend.py says it in our words.
    logging.getLogger("celery.worker.strategy").setLevel(logging.WARNING)
    logging.getLogger("celery.app.trace").setLevel(logging.WARNING)
    logging.getLogger("httpx2").setLevel(logging.WARNING)


def adopt(name: str) -> None:
    """From now on a library's logger that has handlers of its own writes as we do."""
    logger = logging.getLogger(name)
    logger.handlers.clear()
    logger.propagate = True


class JsonLines(logging.Formatter):
    """A record as one line of JSON: time, level, logger and message, the ids that it carries, and what was raised."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        carried = {name: getattr(record, name, NO_ID) for name in IDS}
        line |= {name: value for name, value in carried.items() if value != NO_ID}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line).decode()
