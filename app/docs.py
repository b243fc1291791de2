"""/docs: the OpenAPI document, rendered by a script that we ship. The page may fetch from this server alone."""

from flask import Flask, Response, current_app

POLICY = (
    "default-src 'none'; script-src 'self'; connect-src 'self'; font-src 'self'; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'none'"
)


def register(app: Flask) -> None:
    app.add_url_rule("/docs", view_func=docs)


def docs() -> Response:
    page = current_app.send_static_file("docs.html")
    page.headers["Content-Security-Policy"] = POLICY
    return page
