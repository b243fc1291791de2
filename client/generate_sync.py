"""Writes celerity_client/_sync from celerity_client/_async: one source for both clients, after the example of httpcore.

`python client/generate_sync.py`; needs ruff.
"""

import re
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).parent / "celerity_client"
ASYNC, SYNC = PACKAGE / "_async", PACKAGE / "_sync"
# In this order.
REPLACEMENTS = (
    (r"\b_async\b", "_sync"),
    (r"\basync_results\b", "results"),
    (r"\bAsync(?=[A-Z])", ""),
    (r"\basync (?=def|with|for)", ""),
    (r"\bawait ", ""),
    (r"\b__a(enter|exit)__\b", r"__\1__"),
    (r"\baclose\b", "close"),
    (r"\basyncio\b", "time"),
)


NOTE = "# Generated from _async/ by client/generate_sync.py.\n"


def generated(file: Path) -> str:
    """The text of the file in _sync/ that this one of _async/ becomes."""
    source = file.read_text()
    for pattern, replacement in REPLACEMENTS:
        source = re.sub(pattern, replacement, source)
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(SYNC / file.name), "-"]
    return subprocess.run(command, input=NOTE + source, capture_output=True, text=True, check=True).stdout


def main() -> None:
    for file in ASYNC.glob("*.py"):
        (SYNC / file.name).write_text(generated(file))


if __name__ == "__main__":
    main()
