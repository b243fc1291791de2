"""What gunicorn serves: `gunicorn -c app/gunicorn.conf.py app.wsgi:application`."""

from app import create_app
from app.request_id import LOG_FORMAT, InLogs
from logs import adopt, configure_logging
from settings import load_settings
from store.store import open_store

settings = load_settings()
configure_logging(settings.log_level, LOG_FORMAT, InLogs(), form=settings.log_format)
adopt("gunicorn.error")
application = create_app(settings, open_store(settings))
