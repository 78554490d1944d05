"""What is wrong with a table, kind by kind: all are counted, the first few are told."""

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from concont.errors import DataError, count, printable

N_TOLD = 3  # errors in the line that refuses a table
Severity = Literal["error", "warning"]
Place = tuple[Path, int | None]  # a file and a row of it


@dataclass(frozen=True)
class TableProblem:
    """One problem; an error stops training, a warning does not."""

    severity: Severity
    kind: str
    file: Path
    row: int | None  # as people count: in a CSV the line, where the header is line 1
    message: str

    def __str__(self) -> str:
        row = "" if self.row is None else f" row {self.row}"
        return f"{printable(self.file)}{row}: {self.message}"


@dataclass(frozen=True)
class ProblemKind:
    """All problems of one kind."""

    severity: Severity
    kind: str
    count: int
    problems: tuple[TableProblem, ...]  # the first of them


class Problems:
    """A list that problems are added to; limit: how many of a kind are kept, None for all."""

    def __init__(self, limit: int | None = 20) -> None:
        self.limit = limit
        self._kept: dict[tuple[Severity, str], list[TableProblem]] = {}
        self._count: dict[tuple[Severity, str], int] = {}

    def add(self, severity: Severity, kind: str, place: Place, message: str) -> None:
        """One problem."""
        self.add_rows(severity, kind, np.zeros(1, np.int64), lambda _: place, lambda _: message)

    def add_rows(
        self,
        severity: Severity,
        kind: str,
        rows: NDArray[np.int64],
        place: Callable[[int], Place],
        describe: Callable[[int], str],
    ) -> None:
        """The same problem of many rows; only those that are kept are put into words."""
        if not len(rows):
            return
        key = (severity, kind)
        kept = self._kept.setdefault(key, [])
        self._count[key] = self._count.get(key, 0) + len(rows)
        room = len(rows) if self.limit is None else max(0, self.limit - len(kept))
        for row in rows[:room].tolist():
            kept.append(TableProblem(severity, kind, *place(row), describe(row)))

    @property
    def kinds(self) -> tuple[ProblemKind, ...]:
        """Errors first, each kind in the order in which it was met."""
        ordered = sorted(self._kept.items(), key=lambda item: item[0][0])
        return tuple(
            ProblemKind(severity, kind, self._count[severity, kind], tuple(kept))
            for (severity, kind), kept in ordered
        )

    def count(self, severity: Severity) -> int:
        """How many errors or warnings there are in all."""
        return sum(n for (found, _), n in self._count.items() if found == severity)


def suggest_images(kinds: tuple[ProblemKind, ...], source: Path, images: Path | None) -> str:
    """What to do about images that are missing beside a table; empty where that is no help."""
    missing = any(kind.kind == "missing image" for kind in kinds)
    if images is not None or source.is_dir() or not missing:
        return ""
    return "the images may lie elsewhere: --images FOLDER says where"


def refuse_errors(problems: Problems, others: str = "", hint: str = "") -> None:
    """Raise the first errors, if there are any, in one line.

    others: words on the rest of them; hint: how to mend them.
    """
    errors = [p for kind in problems.kinds for p in kind.problems if kind.severity == "error"]
    if errors:
        told = errors[:N_TOLD]
        more = problems.count("error") - len(told)
        rest = [f"and {count(more, 'more error')}{others}"] if more else []
        raise DataError("; ".join([*map(str, told), *rest, *filter(None, [hint])]))


def find_nearest(name: str, known: list[str], cutoff: float = 0.6) -> str | None:
    """The known name that is most like the given one, capitals aside; None if none is."""
    by_small = {other.lower(): other for other in reversed(known)}
    close = get_close_matches(name.lower(), list(by_small), n=1, cutoff=cutoff)
    return by_small[close[0]] if close else None


def suggest(name: str, known: list[str], cutoff: float = 0.6) -> str:
    """`; did you mean ...?`, or nothing where no known name is near."""
    nearest = find_nearest(name, known, cutoff)
    return "" if nearest is None else f"; did you mean {printable(nearest)!r}?"
