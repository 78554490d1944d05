"""JSON from a file that anybody may have written."""

import json
from pathlib import Path
from typing import Any

from concont.errors import DataError, printable

LARGEST = 2**28  # bytes of a file


def read_json(path: Path) -> Any:
    """What a file holds; a DataError says in one line why it cannot be read."""
    name = printable(path)
    try:
        if path.stat().st_size > LARGEST:
            raise DataError(f"{name} has more than {LARGEST:,} bytes, too many for such a file")
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{name} cannot be read: {error}") from None
    return parse_json(text, name)


def parse_json(text: Any, where: str) -> Any:
    """Plain values from JSON; where: names it in an error."""
    try:
        return json.loads(text)
    except RecursionError:
        raise DataError(f"{where} is damaged: it is nested too deep") from None
    except (ValueError, TypeError) as error:  # what stands in a damaged ledger may be no text
        raise DataError(f"{where} is damaged: {error}") from None
