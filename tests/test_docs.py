"""What the documentation names is there."""

import re
from pathlib import Path

import pytest

from settings import CLIENT_VARIABLES, Settings

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\]\(([^)#\s]+)")
VARIABLE = re.compile(r"(?<!_)\bCELERITY_[A-Z_]+[A-Z]\b")
COMMAND = re.compile(r"(?:python -m |\.venv/bin/)celerity ([a-z]+)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_settings_and_commands_exist(page: Path) -> None:
    from celerity.__main__ import celerity

    text = page.read_text()
    # The page of all calls is written when the site is built.
    links = [link for link in LINK.findall(text) if "://" not in link and link != "calls.md"]
    assert [link for link in links if not (page.parent / link).exists()] == []
    known = {f"CELERITY_{name.upper()}" for name in Settings.__struct_fields__} | set(CLIENT_VARIABLES)
    assert set(VARIABLE.findall(text)) <= known
    assert set(COMMAND.findall(text)) <= set(celerity.commands)


def test_every_page_is_in_the_site() -> None:
    contents = (ROOT / "docs" / "index.md").read_text()
    missing = [page.stem for page in (ROOT / "docs").glob("*.md") if page.stem not in contents]
    assert missing in ([], ["index"])
