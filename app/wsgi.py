"""What gunicorn serves: `gunicorn -c app/gunicorn.conf.py app.wsgi:application`."""

from app import create_app
from app.request_id import LOG_FORMAT, InLogs
from app.tracing import trace
from logs import adopt, configure_logging
from settings import load_settings
from store.store import open_store
from tracing import start_tracing

settings = load_settings()
configure_logging(settings.log_level, LOG_FORMAT, InLogs(), form=settings.log_format)
adopt("gunicorn.error")
if settings.traces:
    start_tracing("celerity-api")
application = create_app(settings, open_store(settings))
if settings.traces:
    trace(application)
