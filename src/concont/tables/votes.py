"""Annotators' votes on the images of a folder, and the table of candidate sets made from them."""

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
from numpy.typing import NDArray

from concont.errors import DataError, UsageError, printable
from concont.runs.folder import write_whole
from concont.tables.columns import escape_column, tidy, to_strings
from concont.tables.files import SUFFIXES, Cells, read_cells
from concont.tables.listing import (
    describe_missing,
    find_leaving,
    list_image_names,
    look_up,
    name_files,
    to_mask,
)
from concont.tables.problems import Problems, refuse_errors, suggest
from concont.tables.sets import Integers, sort_classes
from concont.tables.spreadsheet import escape_formula

LONG = ("image", "annotator", "label")


@dataclass(frozen=True)
class Votes:
    """V votes on some of the images of a folder; nobody votes twice for the same thing."""

    images: Any  # Arrow array of strings: all images of the folder, or of a table, sorted
    annotators: tuple[str, ...]
    classes: tuple[str, ...]  # in order
    image: Integers  # (V,) index of the image
    annotator: Integers  # (V,) of the annotator
    label: Integers  # (V,) of the class
    row: Integers  # (V,) where each stands in the file


@dataclass(frozen=True)
class Counts:
    """How many voted for a class, of each image and each class that anybody voted for."""

    image: Integers  # (M,) sorted
    label: Integers  # (M,)
    votes: Integers  # (M,) at least 1


@dataclass(frozen=True)
class _Ballots:
    """Votes in words, as they stand in the file."""

    image: Any  # Arrow arrays of strings
    annotator: Any
    label: Any
    row: Integers


def read_votes(path: Path, folder: Path, problems: Problems, known: Any = None) -> Votes:
    """The votes of a file on the images of a folder; a DataError tells what is wrong.

    The file has columns image, annotator and label, or image and one column an annotator. What is
    odd without being wrong is added to the problems as a warning. known: an Arrow array of images
    of a table, which need not be in the folder; the others there are then left out.
    """
    listed = list_image_names(folder) if known is None else known
    cells = read_cells(path)
    for row, message in cells.misfits:
        problems.add("error", "cells", (path, row), message)
    is_long = _is_long(cells)
    image = name_files(cells.columns["image"], folder)
    ballots = _read_long(cells, image) if is_long else _read_wide(cells, image)
    _check_ballots(path, folder, ballots, problems, known)
    refuse_errors(problems)
    if not len(ballots.row):
        raise DataError(f"{printable(path)}: holds no vote")
    images = pc.unique(pa.concat_arrays([listed, ballots.image]))
    images = images.take(pc.sort_indices(images))
    classes = sort_classes(pc.unique(ballots.label).to_pylist())
    annotators = sorted(pc.unique(ballots.annotator).to_pylist())
    votes = Votes(
        images,
        tuple(annotators),
        tuple(classes),
        _find_index(ballots.image, images),
        _find_index(ballots.annotator, pa.array(annotators, pa.string())),
        _find_index(ballots.label, pa.array(classes, pa.string())),
        ballots.row,
    )
    return _count_once(votes, path, ballots, problems)


def count_votes(votes: Votes) -> Counts:
    """The votes for each class of each image."""
    keys, counts = np.unique(votes.image * len(votes.classes) + votes.label, return_counts=True)
    image, label = np.divmod(keys, len(votes.classes))
    return Counts(image, label, counts.astype(np.int64))


def choose_candidates(counts: Counts, min_votes: int) -> Counts:
    """Those with enough votes; the ones with the most where no class of an image has enough."""
    best = np.zeros(int(counts.image.max(initial=-1)) + 1, np.int64)
    np.maximum.at(best, counts.image, counts.votes)
    kept = counts.votes >= np.minimum(best[counts.image], min_votes)
    return Counts(counts.image[kept], counts.label[kept], counts.votes[kept])


def make_rows(votes: Votes, chosen: Counts) -> Any:
    """An Arrow table with a row an image: image, candidates, votes; the most votes come first."""
    lists = list_candidates(votes.classes, chosen, len(votes.images))
    names, counts = (pc.binary_join(each, "|") for each in lists)
    return pa.table({"image": votes.images, "candidates": names, "votes": counts})


def list_candidates(classes: Sequence[str], chosen: Counts, n_images: int) -> tuple[Any, Any]:
    """Names and counts of each image's candidates, the most votes first: Arrow lists of strings."""
    order = np.lexsort([chosen.label, -chosen.votes, chosen.image])
    sizes = np.bincount(chosen.image, minlength=n_images)
    offsets = pa.array(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32))
    names = pa.array(classes, pa.string()).take(pa.array(chosen.label[order]))
    counts = pa.array(chosen.votes[order]).cast(pa.string())
    names, counts = (pa.ListArray.from_arrays(offsets, parts) for parts in (names, counts))
    return names, counts


def refuse_output(path: Path, votes: Path, overwrite: bool) -> None:
    """Before the work: never write over the votes, nor over another file unless asked to."""
    if path.suffix.lower() not in SUFFIXES:
        raise UsageError(f"{printable(path)}: the table's name must end in .csv or .parquet")
    if not path.parent.is_dir():
        raise UsageError(f"{printable(path)}: there is no folder {printable(path.parent)}")
    if path.exists() and (not path.is_file() or (votes.exists() and path.samefile(votes))):
        what = "the file of the votes" if path.is_file() else "not a file"
        raise UsageError(f"{printable(path)} is {what}; choose another name for the table")
    if path.exists() and not overwrite:
        raise UsageError(f"{printable(path)} is there already; --overwrite replaces it")


def write_rows(table: Any, path: Path) -> None:
    """Write a table as a whole, CSV or Parquet."""
    if path.suffix.lower() == ".parquet":
        write_whole(path, lambda temporary: pa.parquet.write_table(table, temporary))
    else:
        cells = _escape(path, table)
        write_whole(path, lambda temporary: _write_csv(cells, temporary))


def _is_long(cells: Cells) -> bool:
    """Whether each row is one vote; refused where that cannot be told."""
    where, names = printable(cells.path), list(cells.names)
    if "image" not in names:
        raise DataError(f"{where}: there is no column image{suggest('image', names)}")
    for name, other in (("annotator", "label"), ("label", "annotator")):
        if name in names and other not in names:
            others = [n for n in names if n not in LONG]
            raise DataError(
                f"{where}: there is a column {name} but no column {other}{suggest(other, others)}"
                " (give image, annotator and label, or image and one column an annotator)"
            )
    if "" in names and "label" not in names:
        raise DataError(f"{where}: column {names.index('') + 1} has no name")
    if len(names) == 1:
        raise DataError(f"{where}: there is no column of votes beside image")
    return "label" in names


def _read_long(cells: Cells, image: Any) -> _Ballots:
    annotator, label = tidy(cells.columns["annotator"]), tidy(cells.columns["label"])
    voted = pc.not_equal(label, "")
    row = cells.rows[to_mask(voted)]
    return _Ballots(image.filter(voted), annotator.filter(voted), label.filter(voted), row)


def _read_wide(cells: Cells, image: Any) -> _Ballots:
    codes = image.dictionary_encode().indices.to_numpy(zero_copy_only=False)
    _, first = np.unique(codes, return_index=True)
    if len(first) < len(codes):
        i = int(np.setdiff1d(np.arange(len(codes)), first)[0])
        raise DataError(
            f"{printable(cells.path)} row {cells.rows[i]}: {printable(image[i])} has a row already "
            "(with a row a vote the columns are called image, annotator and label)"
        )
    parts = []
    for name in cells.names:
        if name != "image":
            label = tidy(cells.columns[name])
            voted = pc.not_equal(label, "")
            label, row = label.filter(voted), cells.rows[to_mask(voted)]
            parts.append(_Ballots(image.filter(voted), pa.repeat(name, len(row)), label, row))
    return _Ballots(
        pa.concat_arrays([part.image for part in parts]),
        pa.concat_arrays([part.annotator for part in parts]),
        pa.concat_arrays([part.label for part in parts]),
        np.concatenate([part.row for part in parts]),
    )


def _check_ballots(
    path: Path, folder: Path, ballots: _Ballots, problems: Problems, known: Any
) -> None:
    def add(kind: str, wrong: NDArray[np.bool_], describe: Callable[[int], str]) -> None:
        def place(i: int) -> tuple[Path, int]:
            return path, int(ballots.row[i])

        problems.add_rows("error", kind, np.flatnonzero(wrong), place, describe)

    def show(i: int) -> str:
        return printable(ballots.image[i])

    def describe_absent(i: int) -> str:
        first = "" if known is None else f"{show(i)} is in no row of the table, and "
        return first + describe_missing(ballots.image[i].as_py(), folder)

    where = printable(folder)
    unnamed, leaving = to_mask(pc.equal(ballots.image, "")), find_leaving(ballots.image)
    there, away = look_up(ballots.image, folder)
    leaving |= away
    add("path", unnamed, lambda _: "names no image")
    add("outside", leaving, lambda i: f"{show(i)} leaves the image folder {where}")
    if known is not None:
        there |= to_mask(pc.is_in(ballots.image, value_set=known))
    add("missing image", ~unnamed & ~leaving & ~there, describe_absent)
    nobody = to_mask(pc.equal(ballots.annotator, ""))
    add("annotator", nobody, lambda _: "names no annotator")
    joined = to_mask(pc.match_substring(ballots.label, "|"))
    add("label", joined, lambda i: f"label {printable(ballots.label[i])!r} holds a |")


def _count_once(votes: Votes, path: Path, ballots: _Ballots, problems: Problems) -> Votes:
    """Without what an annotator has said twice of an image; that and changed minds are warnings."""
    pair = votes.image * len(votes.annotators) + votes.annotator
    vote = pair * len(votes.classes) + votes.label
    order = np.argsort(ballots.row, kind="stable")
    _, first = np.unique(vote[order], return_index=True)
    kept = np.sort(order[first])
    again = np.setdiff1d(np.arange(len(vote)), kept)
    _, first = np.unique(pair[kept], return_index=True)
    changed = np.delete(kept, first)

    def place(i: int) -> tuple[Path, int]:
        return path, int(ballots.row[i])

    def describe(i: int) -> str:
        who, what = printable(ballots.annotator[i]), printable(ballots.image[i])
        return f"{who} has voted on {what} before"

    repeated = "for the same label: counted once"
    problems.add_rows("warning", "vote", again, place, lambda i: f"{describe(i)}, {repeated}")
    other = "for another label: both count"
    problems.add_rows("warning", "votes", changed, place, lambda i: f"{describe(i)}, {other}")
    columns = (votes.image, votes.annotator, votes.label, votes.row)
    kept_columns = (column[kept] for column in columns)
    return Votes(votes.images, votes.annotators, votes.classes, *kept_columns)


def _find_index(names: Any, known: Any) -> Integers:
    found = pc.index_in(names, value_set=known).to_numpy(zero_copy_only=False)
    return np.asarray(found, dtype=np.int64)


def _escape(path: Path, table: Any) -> Any:
    """The columns as text, without formulas; refused where one holds neither text nor numbers."""
    columns = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        try:
            columns[escape_formula(name)] = escape_column(to_strings(column))
        except (pa.ArrowException, NotImplementedError):
            what = f"column {printable(name)} holds {printable(column.type)}"
            raise DataError(f"{printable(path)}: {what}, which a CSV cannot hold") from None
    return pa.table(columns)


def _write_csv(table: Any, path: Path) -> None:
    plain = not any(
        pc.any(pc.match_substring_regex(column, '[",\r\n]')).as_py() for column in table.columns
    )
    options = {"include_header": False, "quoting_style": "none" if plain else "needed"}
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerow(table.column_names)
    with open(path, "ab") as file:
        pa.csv.write_csv(table, file, pa.csv.WriteOptions(**options))
