"""Images on disk with candidate sets from a table or a folder: everything but the pixels."""

import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from concont.errors import DataError, count, printable
from concont.tables.check import check_text
from concont.tables.problems import Problems, refuse_errors, suggest_images
from concont.tables.sets import TableSets
from concont.tables.text import TableText, read_text
from concont.tables.vote_table import read_vote_text

log = logging.getLogger("concont")
MOST_CELLS = 2**33  # rows times classes


@dataclass(frozen=True)
class RowVotes:
    """How many voted for a class, of each row and each of its candidates."""

    row: NDArray[np.int64]  # (M,) sorted
    label: NDArray[np.int64]  # (M,) which class
    count: NDArray[np.int64]  # (M,)
    n_classes: int

    def dense(self, rows: NDArray[np.int64]) -> NDArray[np.int32]:
        """The votes (R, C) of some rows; 0 for all classes of one without votes."""
        first = np.searchsorted(self.row, rows)
        sizes = np.searchsorted(self.row, rows, side="right") - first
        place = np.repeat(np.arange(len(rows)), sizes)  # (K,) of the members among the rows asked
        member = np.arange(len(place)) + np.repeat(first - np.cumsum(sizes) + sizes, sizes)
        votes = np.zeros((len(rows), self.n_classes), np.int32)
        votes[place, self.label[member]] = self.count[member]
        return votes


@dataclass(frozen=True)
class ImageTable:
    """N images and what is known of their classes; checked, but for the pixels."""

    roots: tuple[Path, ...]  # folders that the images' paths start from
    root: NDArray[np.int32]  # (N,) which of them
    images: Any  # Arrow array of N strings: paths from that folder
    candidates: NDArray[np.bool_]  # (N, C); all True = unlabelled
    votes: RowVotes | None  # how many voted for a class; None: nobody counted
    labels: NDArray[np.int64]  # (N,) true labels, -1 unknown
    is_test: NDArray[np.bool_]  # (N,)
    classes: tuple[str, ...]
    text: TableText  # where each row stands

    def __len__(self) -> int:
        return len(self.root)

    def paths(self, rows: NDArray[np.int64] | None = None) -> list[str]:
        """The full paths of some rows' images, or of all."""
        chosen = np.arange(len(self)) if rows is None else rows
        starts = [os.path.join(root, "") for root in self.roots]
        images = self.images.take(pa.array(chosen)).to_pylist()
        return [starts[k] + name for k, name in zip(self.root[chosen], images, strict=True)]

    def names(self, rows: NDArray[np.int64]) -> list[str]:
        """What some rows' images are called: as in the table, or in full outside its folder."""
        start = os.path.join(self.roots[0], "")
        return [path.removeprefix(start) for path in self.paths(rows)]

    def describe_row(self, i: int) -> str:
        """File and row of an image, as a message names them."""
        file, row = self.text.place(i)
        return printable(file) if row is None else f"{printable(file)} row {row}"

    def describe_image(self, i: int) -> str:
        """The same with the image that the row names."""
        where, (_, row) = self.describe_row(i), self.text.place(i)
        return where if row is None else f"{where}: {self.text.cell('image', i)}"


def read_images_table(
    source: Path,
    images: Path | None = None,
    unlabeled: Path | None = None,
    votes: Path | None = None,
    min_votes: int = 1,
    to_measure: Sequence[str] | None = None,
) -> ImageTable:
    """Read a table (`.csv`, `.parquet`) or an imagefolder; a DataError tells what is wrong.

    images: the folder that the table's paths start from, by default its own. unlabeled: a folder
    of further images without labels; those that are in the table, too, are not taken twice.
    votes: a file of votes on the images of the folder `source`, in place of a table. to_measure:
    the classes of a run that is to be measured on the labels; nothing is to be learned from them.
    """
    problems = Problems()
    if votes is None:
        text = read_text(source, images, unlabeled, problems)
    else:
        text = read_vote_text(votes, source, min_votes, unlabeled, problems)
    sets, _ = check_text(text, problems, to_measure, to_learn=to_measure is None)
    hint = suggest_images(problems.kinds, source, images)
    refuse_errors(problems, ", which `concont data check` lists", hint)
    n_warnings = problems.count("warning")
    if n_warnings:
        told = f"{count(n_warnings, 'warning')}; `concont data check` lists"
        log.warning("%s: %s %s", printable(source), told, "it" if n_warnings == 1 else "them")
    if len(text) * len(sets.classes) > MOST_CELLS:
        raise DataError(
            f"{printable(source)}: {len(sets.classes):,} classes of {len(text):,} rows are too "
            "many; do the candidates hold names of classes?"
        )
    return ImageTable(
        roots=text.roots,
        root=text.root,
        images=text.cells["image"],
        candidates=_make_candidates(sets),
        votes=_make_votes(sets) if text.has_votes else None,
        labels=sets.labels,
        is_test=sets.is_test,
        classes=sets.classes,
        text=text,
    )


def _make_candidates(sets: TableSets) -> NDArray[np.bool_]:
    members = sets.members
    candidates = np.zeros((len(sets.labels), len(sets.classes)), np.bool_)  # (N, C)
    candidates[members.row, members.name] = True
    candidates[members.size == 0] = True
    return candidates


def _make_votes(sets: TableSets) -> RowVotes:
    """Those that were counted: a row without counts has none."""
    members = sets.members
    counted = sets.n_counts[members.row] > 0
    votes = (members.row[counted], members.name[counted], sets.votes[counted])
    return RowVotes(*votes, len(sets.classes))
