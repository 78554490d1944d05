"""The site: `make docs` builds it from these pages and the docstrings, without a network."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent / "src")]

from concont.version import __version__  # noqa: E402

project = "concont"
author = "the concont authors"
copyright = author
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "reference",
]
exclude_patterns = ["_ext"]
source_suffix = {".md": "markdown"}
smartquotes = False  # an option is `--run`, with both dashes

# A link such as [data](data.md) works here and where the pages are read as files.
myst_heading_anchors = 2

autodoc_typehints = "none"  # the docstrings say them with their shapes
autosummary_generate = False
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

html_theme = "furo"
html_title = f"concont {__version__}"
html_copy_source = False
