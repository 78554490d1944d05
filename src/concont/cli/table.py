"""Tables on a screen of any width: numbers stay whole, text folds, nothing in a name is obeyed."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from concont.cli.app import console
from concont.errors import printable

if TYPE_CHECKING:
    from rich.console import Console

SHORT = 8  # letters to which text may be folded, and no further
HEAD = 6  # the same of the words above a column of numbers


@dataclass(frozen=True)
class Column:
    """Numbers stand to the right and are never folded; text stands to the left and may be."""

    name: str
    is_text: bool = False


def print_table(
    title: str, columns: Sequence[Column], rows: Sequence[Sequence[object]], blank: str = ""
) -> None:
    """Print a table as wide as its content, or as the screen; nothing where there are no rows.

    A screen that is too narrow for it gets a list of `name: value` instead, without the values that
    are `blank`.
    """
    if not rows:
        return
    shown = [Column(printable(column.name), column.is_text) for column in columns]
    cells = [[printable(cell) for cell in row] for row in rows]
    screen = console()
    widths = find_widths(shown, cells, _find_room(screen))
    if title:
        print_line(title, screen)
    if widths is None:
        _print_list(shown, cells, blank, screen)
    else:
        _print_columns(shown, cells, widths, screen)


def print_line(line: object, screen: "Console | None" = None) -> None:
    """A line as it is, which a narrow screen breaks anywhere: no markup, no control characters."""
    from rich.text import Text

    (screen or console()).print(Text(printable(line)), soft_wrap=True)


def find_widths(
    columns: Sequence[Column], cells: Sequence[Sequence[str]], room: int | None
) -> list[int] | None:
    """Letters of each column, so that a row takes `room`; None: it cannot, in any way.

    room: None where there is no end of it.
    """
    found = [_measure(column, [row[k] for row in cells]) for k, column in enumerate(columns)]
    widths = [least for least, _ in found]
    spare = float("inf") if room is None else room - sum(widths) - 3 * len(columns) - 1  # frame
    if spare < 0:
        return None
    order = sorted(range(len(found)), key=lambda k: found[k][1] - found[k][0])
    for place, k in enumerate(order):  # those that want little first, the others share the rest
        least, most = found[k]
        more = int(min(most - least, spare // (len(found) - place)))
        widths[k] += more
        spare -= more
    return widths


def _measure(column: Column, cells: Sequence[str]) -> tuple[int, int]:
    """Letters that a column needs at least, and those that it takes up if it may."""
    from rich.cells import cell_len

    widest = max(map(cell_len, cells))
    most = max(widest, cell_len(column.name))
    if column.is_text:
        return min(most, SHORT), most
    longest = max(map(cell_len, column.name.split()), default=0)
    return max(widest, min(longest, HEAD)), most


def _find_room(screen: "Console") -> int | None:
    """Letters of a line; a file or a pipe has no end of them, unless the user says otherwise."""
    return screen.width if screen.is_terminal or "COLUMNS" in os.environ else None


def _print_columns(
    columns: Sequence[Column], cells: Sequence[Sequence[str]], widths: list[int], screen: "Console"
) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table()
    for column, width in zip(columns, widths, strict=True):
        side = "left" if column.is_text else "right"
        table.add_column(Text(column.name, overflow="fold"), justify=side, width=width)  # type: ignore[arg-type]
    for row in cells:
        table.add_row(*(Text(cell, overflow="fold") for cell in row))
    screen.width = max(screen.width, sum(widths) + 3 * len(widths) + 1)
    screen.print(table)


def _print_list(
    columns: Sequence[Column], cells: Sequence[Sequence[str]], blank: str, screen: "Console"
) -> None:
    for row in cells:
        for column, cell in zip(columns, row, strict=True):
            if cell not in ("", blank):
                print_line(f"{column.name}: {cell}" if column.name else cell, screen)
        print_line("", screen)
