"""The rows of a table, of a folder of images and of further unlabelled images, as text."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from concont.errors import DataError, UsageError, printable
from concont.runs.output import SUFFIXES
from concont.tables.columns import tidy
from concont.tables.files import read_cells
from concont.tables.listing import list_image_names, name_files, to_mask
from concont.tables.problems import Place, Problems, find_nearest, suggest

IMAGE = ("image", "file_name")  # the second is Hugging Face's name for it
COLUMNS = ("candidates", "label", "votes", "split")
SPLITS = ("train", "test")
MAKE_TABLE = (
    "; a file of votes goes with a folder of images (--data FOLDER --votes FILE), "
    "or becomes a table by `concont data from-votes`"
)
VOTED = "votes on the images of a folder are given with --votes FILE"
OTHER_SPLITS = {"validation", "valid", "val", "dev", "eval"}


@dataclass(frozen=True)
class TableText:
    """N rows in words: cells without the spaces around them, paths as the files are called."""

    roots: tuple[Path, ...]  # folders that the images' paths start from
    root: NDArray[np.int32]  # (N,) which of them
    files: tuple[Path, ...]  # where the rows stand
    file: NDArray[np.int32]  # (N,) which of them
    row: NDArray[np.int64]  # (N,) the row in that file; 0 where the file is a folder of images
    cells: dict[str, Any]  # Arrow arrays of N strings: image, and those of COLUMNS
    has_votes: bool

    def __len__(self) -> int:
        return len(self.row)

    def place(self, i: int) -> Place:
        """Where a person finds a row: the file and the row in it, or the image itself."""
        if self.row[i]:
            return self.files[int(self.file[i])], int(self.row[i])
        return self.path(i), None

    def path(self, i: int) -> Path:
        """The file of an image."""
        name: str = self.cells["image"][i].as_py()
        return self.roots[int(self.root[i])] / name

    def cell(self, column: str, i: int) -> str:
        """One cell, to be shown."""
        return printable(self.cells[column][i].as_py())


def read_text(
    source: Path, images: Path | None, unlabeled: Path | None, problems: Problems
) -> TableText:
    """The rows of a table file or an imagefolder, and those of the unlabelled images."""
    if source.is_dir():
        if images is not None:
            raise UsageError(
                f"{printable(source)} is itself a folder of images; leave out --images"
            )
        parts = _read_folder(source, problems)
    else:
        if images is not None and not images.is_dir():
            raise UsageError(f"{printable(images)}: no such folder")
        parts = [_read_file(source, images or source.parent, problems)]
    if unlabeled is not None:
        parts.append(read_unlabeled(unlabeled, parts))
    return join_parts(parts)


def _read_file(path: Path, root: Path, problems: Problems, split: str | None = None) -> TableText:
    cells = read_cells(path, IMAGE + COLUMNS)
    for row, message in cells.misfits:
        problems.add("error", "cells", (path, row), message)
    _check_columns(path, cells.names, problems)
    empty = pa.repeat("", len(cells))
    columns = {name: tidy(cells.columns.get(name, empty)) for name in COLUMNS}
    if "candidates" not in cells.columns:  # as everywhere: labels alone are sets of one
        columns["candidates"] = columns["label"]
    if split is not None:
        columns["split"] = pa.repeat(split, len(cells))
    image = next((cells.columns[name] for name in IMAGE if name in cells.columns), empty)
    columns["image"] = name_files(image, root)
    return make_part(path, root, cells.rows, columns, "votes" in cells.columns)


def _check_columns(path: Path, names: Sequence[str], problems: Problems) -> None:
    """Those that must be there are; one that is not read may be misspelt."""
    listed = ", ".join(printable(name) for name in names)
    unread = [name for name in names if name not in IMAGE + COLUMNS]

    def miss(name: str, hint: str = "") -> None:
        message = f"there is no column {name}{suggest(name, unread)}"
        problems.add("error", "column", (path, None), f"{message} (it has: {listed}){hint}")

    if not set(IMAGE) & set(names):
        miss("image")
    if "candidates" not in names:
        if "annotator" in names:
            message = f"has a column annotator and none of candidates, as votes have{MAKE_TABLE}"
            problems.add("error", "column", (path, None), message)
        elif "label" not in names or find_nearest("candidates", unread):
            miss("candidates", MAKE_TABLE)
    for name in ("label", "votes", "split"):
        near = find_nearest(name, unread, 0.75) if name not in names else None
        if near is not None:
            message = f"column {printable(near)!r} is not read; did you mean {name}?"
            problems.add("warning", "column", (path, None), message)


def _read_folder(folder: Path, problems: Problems) -> list[TableText]:
    """The parts of an imagefolder: itself, or its folders `train` and `test`."""
    if _find_metadata(folder) is None:
        inner = {e.name for e in os.scandir(folder) if e.is_dir() and not e.name.startswith(".")}
        splits = inner & set(SPLITS)
        if splits and inner <= {*SPLITS, *OTHER_SPLITS}:
            if inner - splits:
                raise DataError(
                    f"{printable(folder / min(inner - splits))}: neither train nor test; concont "
                    "holds images out by itself (data.holdout), so move them to one of the two"
                )
            return [_read_split(folder / name, problems, name) for name in sorted(splits)]
    return [_read_split(folder, problems, None)]


def _read_split(folder: Path, problems: Problems, split: str | None) -> TableText:
    metadata = _find_metadata(folder)
    if metadata is not None:
        return _read_file(metadata, folder, problems, split)
    image = list_image_names(folder)
    label = pc.replace_substring_regex(image, r"/?[^/]*$", "")
    label = pc.replace_substring_regex(label, r"/.*$", "")
    loose = np.flatnonzero(to_mask(pc.equal(label, "")))
    if len(loose) == len(image):
        raise DataError(
            f"{printable(folder)}: an imagefolder holds metadata.csv, metadata.parquet or a folder "
            f"of images for each class; there is none ({VOTED})"
        )
    label = tidy(label)
    columns = {"image": image, "label": label, "candidates": label}
    columns["split"] = pa.repeat(split or "", len(image))
    columns["votes"] = pa.repeat("", len(image))
    part = make_part(folder, folder, np.zeros(len(image), np.int64), columns, False)

    def describe(_: int) -> str:
        return f"lies in no class's folder ({VOTED})"

    problems.add_rows("error", "folder", loose, part.place, describe)
    return part


def _find_metadata(folder: Path) -> Path | None:
    found = [path for end in SUFFIXES if (path := folder / f"metadata{end}").is_file()]
    if len(found) > 1:
        raise DataError(f"{printable(folder)}: holds both metadata.csv and metadata.parquet")
    return found[0] if found else None


def read_unlabeled(folder: Path, parts: list[TableText]) -> TableText:
    """The images of a folder that are in no row of the other parts."""
    image = list_image_names(folder)
    named = pa.concat_arrays([_join_path(part.roots[0], part.cells["image"]) for part in parts])
    image = image.filter(pc.invert(pc.is_in(_join_path(folder, image), value_set=named)))
    empty = pa.repeat("", len(image))
    columns = {"image": image, **dict.fromkeys(COLUMNS, empty)}
    return make_part(folder, folder, np.zeros(len(image), np.int64), columns, False)


def _join_path(folder: Path, image: Any) -> Any:
    start = os.fsencode(os.path.realpath(folder))  # bytes, for it may be no UTF-8
    return pc.binary_join_element_wise(start, image.cast(pa.binary()), b"/")


def make_part(
    path: Path, root: Path, rows: NDArray[np.int64], cells: dict[str, Any], has_votes: bool
) -> TableText:
    """The rows of one file or folder, whose images lie under one root."""
    first = np.zeros(len(rows), np.int32)
    return TableText((root,), first, (path,), first, rows, cells, has_votes)


def join_parts(parts: list[TableText]) -> TableText:
    """The rows of all, one after the other."""
    if len(parts) == 1:
        return parts[0]
    lengths = [len(part) for part in parts]
    which = np.repeat(np.arange(len(parts), dtype=np.int32), lengths)
    names = ("image", *COLUMNS)
    return TableText(
        tuple(part.roots[0] for part in parts),
        which,
        tuple(part.files[0] for part in parts),
        which,
        np.concatenate([part.row for part in parts]),
        {name: pa.concat_arrays([part.cells[name] for part in parts]) for name in names},
        any(part.has_votes for part in parts),
    )
