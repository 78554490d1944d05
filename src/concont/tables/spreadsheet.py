"""Text that a spreadsheet would run as a formula, written so that it does not."""

import re

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


def _runs(text: str) -> bool:
    return _FORMULA.match(text) is not None and _NUMBER.fullmatch(text) is None
