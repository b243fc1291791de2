"""What a command prints: lines for people, or JSON with --json."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click

from app.answers import write

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def show(value: Any, lines: Iterable[str], as_json: bool) -> None:
    for each in [write(value).decode()] if as_json else lines:
        click.echo(each)


def table(rows: Sequence[Mapping[str, Any]], *columns: str) -> list[str]:
    """Rows as aligned columns under their names; a dash for what a row does not have."""
    cells = [columns, *([_text(row.get(column, "-")) for column in columns] for row in rows)]
    widths = [max(len(row[place]) for row in cells) for place in range(len(columns))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]


def facts(value: Mapping[str, Any]) -> list[str]:
    """One thing, a line for each of its fields."""
    width = max(map(len, value))
    return [f"{name.ljust(width)}  {_text(part)}" for name, part in value.items()]


def _text(part: Any) -> str:
    return (", ".join(map(str, part)) or "none") if isinstance(part, list | tuple) else str(part)
