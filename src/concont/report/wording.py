"""Numbers, times and names as a reader, or a chart, is shown them."""

import html
import json
import os
from pathlib import Path
from typing import Any

from concont.errors import printable

LONGEST = 40  # letters of a name in a chart
SHORT = 14  # letters of a class beside an axis and in a legend
UNKNOWN = "unknown"


def show_share(share: float | None, digits: int = 2) -> str:
    """`94.31 %`, which no line break parts."""
    return UNKNOWN if share is None else f"{100 * share:.{digits}f}\u00a0%"


def show_number(value: float | None) -> str:
    """Three digits that matter: `1,250`, `958`, `10.0`, `0.0317`."""
    if value is None:
        return UNKNOWN
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:#.3g}"


def show_duration(seconds: float | None) -> str:
    """`48 s`, `1 min 48 s`, `2 h 5 min`."""
    if seconds is None:
        return UNKNOWN
    whole = round(seconds)
    if whole < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    return f"{hours:,} h {rest} min" if rest else f"{hours:,} h"


def show_setting(value: Any) -> str:
    """A value as YAML has it."""
    return printable(value if isinstance(value, str) else json.dumps(value))


def hide_folders(text: str, *paths: str | Path) -> str:
    """Text without the folders that these files or folders lie in."""
    for path in map(Path, paths):
        for folder in (path.absolute().parent, path.parent):
            if folder.name:
                text = text.replace(f"{folder}{os.sep}", "")
    return text


def show_in_chart(text: str, longest: int = LONGEST) -> str:
    """A name that Plotly shows as it is: it would take `<b>` or `<a href=...>` for markup.

    Of a longer one the middle is left out: names of many classes differ at their ends alone.
    """
    plain, end = printable(text), longest // 3
    short = plain if len(plain) <= longest else f"{plain[: longest - end - 1]}…{plain[-end:]}"
    return html.escape(short, quote=False)
