"""The page of all calls, written from the OpenAPI document when the site is built."""

from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from app import create_app
from settings import Settings
from store.store import open_store

PAGE = Path(__file__).parent / "calls.md"
HEAD = """# Calls

From the server's own OpenAPI document: `/docs` on a running server shows it with every field. What a schema cannot
say is in [The HTTP API](http.md).
"""


def setup(sphinx: Sphinx) -> None:
    sphinx.connect("builder-inited", lambda _: PAGE.write_text(page()))


def page() -> str:
    """Nothing is asked of Redis for it."""
    settings = Settings()
    store = open_store(settings)
    document = create_app(settings, store).test_client().get("/openapi.json").json
    store.close()
    assert document
    return HEAD + "".join(_section(document, tag) for tag in document["tags"])


def _section(document: dict[str, Any], tag: dict[str, str]) -> str:
    calls = [
        _call(method, path, described)
        for path, methods in document["paths"].items()
        for method, described in methods.items()
        if isinstance(described, dict) and tag["name"] in described.get("tags", [])
    ]
    return f"\n## {tag['name'].capitalize()}\n\n{tag['description']}\n\n" + "\n".join(calls) + "\n"


def _call(method: str, path: str, described: dict[str, Any]) -> str:
    more = f" {described['description']}".replace("\n", " ") if described.get("description") else ""
    return f"- `{method.upper()} {path}`: {described['summary']}.{more}"
