"""The application, put together."""

from threading import Semaphore

from flask import Flask

from app import arrival, auth, bodies, console, docs, errors, headers, links, origin, request_id, together
from app.answers import JSONProvider
from app.cached_check import CachedCheck
from app.openapi import Api
from app.paths import IdConverter
from app.routes import blueprints
from app.state import State, keep
from app.together import shaping
from models.hub import Hub
from settings import Settings
from store.store import Store

CONFIG = {
    "API_TITLE": "Celerity",
    "API_VERSION": "0.1.0",
    "OPENAPI_VERSION": "3.1.0",
    "OPENAPI_URL_PREFIX": "/",
    "PROVIDE_AUTOMATIC_OPTIONS": False,
}
# How long one look at the object storage counts, for whoever asks whether the server is ready.
OBJECTS_CHECK_SECONDS = 5.0
# Together's API has a document of its own.
TOGETHER = "TOGETHER_"
TOGETHER_CONFIG = {
    "TOGETHER_API_TITLE": "Celerity, for the clients of the public SDK",
    "TOGETHER_API_VERSION": "0.1.0",
    "TOGETHER_OPENAPI_VERSION": "3.1.0",
    "TOGETHER_OPENAPI_URL_PREFIX": "/together",
}


def create_app(settings: Settings, store: Store) -> Flask:
    """The WSGI application over an opened store."""
    app = Flask(__name__)
    app.config.update(CONFIG, **TOGETHER_CONFIG, MAX_CONTENT_LENGTH=settings.max_body_bytes + 1)
    app.json = JSONProvider(app)
    app.url_map.converters["id"] = IdConverter
    # A doubled slash is a path of its own (404), not a redirect in HTML.
    app.url_map.merge_slashes = False
    held_requests = Semaphore(settings.max_held_requests)
    objects_check = CachedCheck(store.reach_objects, OBJECTS_CHECK_SECONDS)
    keep(
        app,
        State(
            settings=settings,
            store=store,
            hub=Hub(settings.hub_models),
            held_requests=held_requests,
            objects_check=objects_check,
        ),
    )
    for part in (arrival, errors, request_id, headers, origin, auth, links, bodies, docs, console, shaping):
        part.register(app)
    for prefix, found in (("", blueprints), (TOGETHER, together.blueprints)):
        api = Api(app, needs_key=bool(settings.api_keys), config_prefix=prefix)
        for blueprint in found:
            api.register_blueprint(blueprint)
    return app
