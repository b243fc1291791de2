"""The HTTP API: Flask, flask-smorest, and the schemas. It accepts, reads and answers; it runs no model."""

from app.factory import create_app

__all__ = ["create_app"]
