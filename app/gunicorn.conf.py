"""gunicorn: it watches over processes of our own kind (app/server/), which load the app after their fork."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from app.server.files import raise_file_limit
from app.starting import check_exposure, check_store
from logs import adopt, configure_logging
from settings import load_settings
from store.private_files import close_for

bind = f"127.0.0.1:{os.environ.get('PORT', '8000')}"
worker_class = "app.server.worker.Worker"
workers = 2
# Each runs the application for one request. Most of them hold a GET (at most CELERITY_MAX_HELD_REQUESTS), and cost next
# to nothing; connections have none.
threads = 320
preload_app = False
# A process that has not been heard of for so long is killed; requests may take longer.
timeout = 120
graceful_timeout = 35
keepalive = 75
# The app says what it accepts, with the request's id; a line for every poll would drown that.
accesslog = None
# Its place would be shared by every gunicorn of the same user.
control_socket_disable = True


def on_starting(_: Any) -> None:
    """The process that watches over the others logs as they do."""
    with _refusals_as_sentences():
        settings = load_settings()
        configure_logging(settings.log_level, form=settings.log_format)
        adopt("gunicorn.error")
        close_for(settings)
        check_store(settings)
    raise_file_limit()


def when_ready(server: Any) -> None:
    """It listens, wherever the configuration or the system said, and nobody serves yet."""
    with _refusals_as_sentences():
        check_exposure(load_settings(), [listener.sock for listener in server.LISTENERS])


@contextmanager
def _refusals_as_sentences() -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise SystemExit(f"celerity: {error}") from error
