"""The documentation as a site: `make docs` builds docs/ into artifacts/docs and fails on any warning."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
sys.path.insert(0, str(HERE))

project = "Celerity"
copyright = "Celerity"
extensions = ["myst_parser", "calls"]
exclude_patterns = ["_build"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = "Celerity"
html_show_copyright = False
# Only the source files' own names may be linked to; the site is one of files.
html_copy_source = False
