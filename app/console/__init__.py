"""The console at /: pages for people who watch a run, over the same store and the same API keys."""

from flask import Flask

from app.console import checkpoint, curves, login, operation, overview, session
from app.console.blueprint import console

__all__ = ["register"]

# Importing them has put their routes on the blueprint.
PAGES = (overview, session, curves, operation, checkpoint, login)


def register(app: Flask) -> None:
    app.register_blueprint(console)
