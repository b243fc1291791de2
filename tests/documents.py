"""The code blocks and commands of README and docs/, taken out of the pages that hold them."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from markdown_it import MarkdownIt

from stack.process import ROOT

# docs/calls.md is written when the site is built, from the OpenAPI document.
PAGES = [
    page
    for page in (ROOT / "README.md", ROOT / "client" / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    if page.name != "calls.md"
]
COMMAND = re.compile(r"(make|docker|celerity|python|\.venv/bin/\w+) \S")


class Block(NamedTuple):
    """`kind` is the word after the fence, and empty for a block that is only indented."""

    page: Path
    line: int
    kind: str
    text: str

    @property
    def name(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks_of(*kinds: str) -> list[Block]:
    """Those of some kinds, or all."""
    found = [
        Block(page, token.map[0] + 1, token.info, token.content)
        for page in PAGES
        for token in MarkdownIt().parse(page.read_text())
        if token.type in ("fence", "code_block") and token.map
    ]
    return [block for block in found if not kinds or block.kind in kinds]


def commands_in_sentences(page: Path) -> Iterator[str]:
    """`such ones`, in the running text and in tables."""
    for token in MarkdownIt().enable("table").parse(page.read_text()):
        for part in token.children or ():
            if part.type == "code_inline" and COMMAND.match(part.content):
                yield part.content
