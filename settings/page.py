"""docs/settings.md, from the fields, their comments and their strings: `python -m settings.page`."""

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from settings import fields
from settings.fields import DAY, Settings, variable_of

PAGE = Path(__file__).resolve().parent.parent / "docs" / "settings.md"
HEAD = """# Settings

From the environment, read once when a process starts. A `CELERITY_` name that is no setting, or a value that a setting
does not take, is refused with a sentence. Times are in seconds, sizes in bytes.
"""
TABLE = "| setting | default | |\n|---|---|---|\n"


def page() -> str:
    return HEAD + "".join(_lines())


def _lines() -> Iterator[str]:
    source = inspect.getsource(fields)
    (settings,) = (node for node in ast.parse(source).body if isinstance(node, ast.ClassDef))
    lines = source.splitlines()
    for field, text in zip(settings.body, settings.body[1:], strict=False):
        if not isinstance(field, ast.AnnAssign):
            continue
        assert isinstance(field.target, ast.Name) and isinstance(text, ast.Expr), ast.dump(field)
        above, before = (lines[field.lineno - back].strip() for back in (2, 3))
        if above.startswith("# ") and not before:
            yield f"\n## {above[2:]}\n\n{TABLE}"
        name, described = field.target.id, " ".join(ast.literal_eval(text.value).split())
        yield f"| `{variable_of(name)}` | {_default(name)} | {described} |\n"


def _default(name: str) -> str:
    value: Any = getattr(Settings(), name)
    if value in (None, "", ()):
        return "none"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if not isinstance(value, int | float):
        return f"`{value}`"
    number = int(value) if value == int(value) else value
    return f"`{number}`{_in_words(name, int(value))}"


def _in_words(name: str, value: int) -> str:
    if "bytes" in name:
        units = (("GiB", 1024**3), ("MiB", 1024**2))
    elif name.endswith(("timeout", "retention", "seconds")):
        units = (("d", int(DAY)), ("h", 3600))
    else:
        return ""
    return next((f" ({value // size} {unit})" for unit, size in units if value >= size), "")


if __name__ == "__main__":
    PAGE.write_text(page())
