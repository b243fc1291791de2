"""Security headers of every response: no framing, no content sniffing, no referrer."""

from flask import Flask, Response, request

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
}


def register(app: Flask) -> None:
    app.after_request(protect)


def protect(response: Response) -> Response:
    """A page that has a policy of its own keeps it."""
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    if request.path.startswith(("/v1/", "/together/v1/")):
        response.headers["Cache-Control"] = "no-store"
    return response
