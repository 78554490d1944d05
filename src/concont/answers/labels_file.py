"""Resolved labels as a file: a table of all images, or a sheet of those to be labelled next."""

import csv
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from numpy.typing import NDArray

from concont.answers.resolution import Resolution
from concont.runs.folder import write_whole
from concont.tables.spreadsheet import escape_formula

DIGITS = 6  # of a figure


def make_labels(found: Resolution) -> dict[str, list[Any]]:
    """A row an image, by column, in the order of the data."""
    confident = [None] * len(found) if found.confident is None else found.confident.tolist()
    return {
        "image": list(found.images),
        "label": _name(found, found.label),
        "probability": _shorten(found.probability),
        "outside": _shorten(found.outside),
        "score": _shorten(found.score),
        "confident": confident,
        "candidates": join_candidates(found),
        "overruled": found.overruled.tolist(),
        "review": found.review.tolist(),
    }


def make_sheet(found: Resolution, rows: NDArray[np.int64]) -> dict[str, list[Any]]:
    """The images of these rows for a person to label: `annotator` and `label` are to be filled in.

    `concont data add-votes` takes it back as it is; a row without a label is no vote.
    """
    labels = make_labels(found)
    columns = {
        "image": labels["image"],
        "annotator": [""] * len(found),
        "label": [""] * len(found),
        "suggestion": labels["label"],
        **{name: labels[name] for name in ("probability", "candidates", "review")},
    }
    return {name: [column[row] for row in rows] for name, column in columns.items()}


def join_candidates(found: Resolution) -> list[str]:
    """The names of each image's candidates joined by `|`, as in a table; none if unlabelled."""
    names = np.array(found.classes, dtype=object)
    pairs = zip(found.candidates, found.partial, strict=True)
    return ["|".join(names[row]) if partial else "" for row, partial in pairs]


def write_columns(columns: dict[str, list[Any]], path: Path) -> None:
    """Write them as a whole: Parquet by that ending, else CSV."""
    if path.suffix.lower() == ".parquet":
        write_whole(path, lambda temporary: pa.parquet.write_table(pa.table(columns), temporary))
    else:
        write_whole(path, lambda temporary: _write_csv(columns, temporary))


def _write_csv(columns: dict[str, list[Any]], path: Path) -> None:
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(_show(row) for row in zip(*columns.values(), strict=True))


def _show(row: Iterable[Any]) -> Iterator[Any]:
    """Cells as a spreadsheet takes them: `true` and `false`, nothing for None, no formula."""
    for cell in row:
        if isinstance(cell, bool):
            yield "true" if cell else "false"
        else:
            yield escape_formula(cell) if isinstance(cell, str) else cell


def _name(found: Resolution, labels: Sequence[int] | NDArray[np.int64]) -> list[str]:
    return [found.classes[label] for label in labels]


def _shorten(values: NDArray[np.float32]) -> list[float]:
    return [float(f"{value:.{DIGITS}g}") for value in values.tolist()]
