"""Text that a spreadsheet would run as a formula, written so that it does not."""

import re
from typing import Any

import pyarrow.compute as pc

# An apostrophe before such a text is one more of it, so that what is read is what was written.
FORMULA = r"^'*[=+\-@\t\r]"
NUMBER = r"^'*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_FORMULA, _NUMBER = re.compile(FORMULA), re.compile(NUMBER, re.ASCII)


def escape_formula(text: str) -> str:
    """A cell of a CSV: with an apostrophe before it where it begins like a formula.

    Numbers such as -1.5 stay as they are.
    """
    return f"'{text}" if _runs(text) else text


def unescape_formula(text: str) -> str:
    """The text of which `escape_formula` made a cell."""
    return text[1:] if text.startswith("'") and _runs(text[1:]) else text


def escape_column(cells: Any) -> Any:
    """An Arrow array of strings, each as `escape_formula` writes it."""
    return pc.if_else(_run(cells), pc.binary_join_element_wise("'", cells, ""), cells)


def unescape_column(cells: Any) -> Any:
    """The array of which `escape_column` made cells."""
    quoted = pc.starts_with(cells, "'")
    if not pc.any(quoted).as_py():
        return cells
    rest = pc.if_else(quoted, pc.utf8_slice_codeunits(cells, 1), "")
    return pc.if_else(_run(rest), rest, cells)


def _runs(text: str) -> bool:
    return _FORMULA.match(text) is not None and _NUMBER.fullmatch(text) is None


def _run(cells: Any) -> Any:
    begins = pc.match_substring_regex(cells, FORMULA)
    return pc.and_not(begins, pc.match_substring_regex(cells, NUMBER))
