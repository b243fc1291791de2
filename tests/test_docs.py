"""What the documentation names is there."""

import re
from pathlib import Path

import pytest

from settings import CLIENT_VARIABLES, Settings
from stack.process import ROOT
from tests.documents import PAGES, Block, blocks_of, commands_in_sentences
from tests.typed_commands import check

LINK = re.compile(r"\]\(([^)#\s]+)")
VARIABLE = re.compile(r"(?<!_)\bCELERITY_[A-Z_]+[A-Z]\b")
# What a block may be, by the word after its fence. `bash` and `python` are run (tests/stories/test_documents.py);
# `console` needs Docker, GPUs, other hosts or many minutes, so its commands are only checked.
# `ini` are units of systemd (tests/test_units.py).
KINDS = {"bash", "python", "console", "ini", "text", "{toctree}"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_settings_and_commands_exist(page: Path) -> None:
    text = page.read_text()
    # The page of all calls is written when the site is built.
    links = [link for link in LINK.findall(text) if "://" not in link and link != "calls.md"]
    assert [link for link in links if not (page.parent / link).exists()] == []
    known = {f"CELERITY_{name.upper()}" for name in Settings.__struct_fields__} | set(CLIENT_VARIABLES)
    assert set(VARIABLE.findall(text)) <= known
    for command in commands_in_sentences(page):
        check(command)


def test_every_block_is_of_a_kind_that_is_run_checked_or_no_code() -> None:
    assert [block.name for block in blocks_of() if block.kind not in KINDS] == []


@pytest.mark.parametrize("block", blocks_of("console"), ids=lambda block: block.name)
def test_the_commands_of_a_block_that_is_not_run_exist(block: Block) -> None:
    check(*block.text.splitlines())


def test_every_page_is_in_the_site() -> None:
    contents = (ROOT / "docs" / "index.md").read_text()
    missing = [page.stem for page in (ROOT / "docs").glob("*.md") if page.stem not in contents]
    assert missing in ([], ["index"])
