"""Data of a user's own: looked at, and loaded, whether arrays in a file or images with a table."""

import hashlib
import statistics
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

from concont.data import sources
from concont.data.mapped_arrays import READ_NPY_HEADER
from concont.data.sources import Dataset, digest
from concont.errors import ConcontError, UsageError
from concont.images.cache import load_images
from concont.images.files import read_size
from concont.runs.settings import NAMED_SOURCES, Data
from concont.tables.table import ImageTable, read_images_table

TABLES = (".csv", ".parquet")
LARGEST = 64  # pixels: the side that image files are given unless a user asks for another
LOOKED_AT = 100  # images whose size is read to choose one
CHANNELS = 3

Report = Callable[[int, int], None]  # images read, of how many


def holds_image_files(source: str) -> bool:
    """Whether a source is a table of image files, or a folder of them."""
    if source in NAMED_SOURCES:
        return False
    return source.lower().endswith(TABLES) or Path(source).is_dir()


def load_data(data: Data, report: Report | None = None) -> Dataset:
    """The data of these settings; `report` hears how far the reading of image files is."""
    if not holds_image_files(data.source):
        _refuse_file_settings(data)
        return sources.load(data.source, data.root)
    return load_table(data, open_table(data), report)


def measure_data(data: Data) -> tuple[int, tuple[int, ...], bool] | None:
    """Rows, the shape of one, and whether it is read from image files; None: cannot be told yet.

    What is wrong with the data is told when it is loaded.
    """
    if holds_image_files(data.source):
        table = open_table(data)
        size = data.image_size or choose_size(table.paths(np.arange(min(LOOKED_AT, len(table)))))
        return int((~table.is_test).sum()), (size, size, CHANNELS), True
    if not data.source.endswith(".npz"):
        return None
    try:
        with zipfile.ZipFile(data.source) as archive, archive.open("x_train.npy") as member:
            shape, _, _ = READ_NPY_HEADER[npy.read_magic(member)](member)
    except (OSError, KeyError, ValueError, zipfile.BadZipFile):
        return None
    return (shape[0], tuple(shape[1:]), False) if len(shape) > 1 else None


def open_table(data: Data) -> ImageTable:
    """The table of these settings: a file, a folder that has one, or votes on a folder's images."""
    source = Path(data.source)
    if data.votes is not None and not source.is_dir():
        raise UsageError(f"--votes go with a folder of images; {source} is none")
    if data.votes is not None and data.images is not None:
        raise UsageError("--votes name the images of the folder --data; leave out --images")
    images, unlabeled, votes = (
        None if path is None else Path(path)
        for path in (data.images, data.unlabeled_images, data.votes)
    )
    return read_images_table(source, images, unlabeled, votes, data.min_votes)


def choose_size(paths: Sequence[str]) -> int:
    """The side that images are given: their own usual one, but at most LARGEST."""
    sides = []
    for path in paths:
        try:
            sides.append(min(read_size(path)))
        except ConcontError:  # told when it is loaded
            continue
    return min(LARGEST, max(8, round(statistics.median(sides)))) if sides else LARGEST


def load_table(data: Data, table: ImageTable, report: Report | None = None) -> Dataset:
    """The pixels of a table's images, from the cache where they are, with what is known of them."""
    order = np.argsort(table.is_test, kind="stable")  # the training images come first
    n_train = int((~table.is_test).sum())
    size = data.image_size or choose_size(table.paths(order[:LOOKED_AT]))
    paths = table.paths(order)
    found = load_images(
        *(paths, (size, size), CHANNELS, data.fit),
        report=report,
        describe=lambda row: table.describe_image(int(order[row])),
    )
    train, test = order[:n_train], order[n_train:]
    known: dict[str, Any] = {
        "candidates": table.candidates[train],
        "y_train": table.labels[train],
        "y_test": table.labels[test] if len(test) else None,
    }
    return Dataset(
        x_train=found.pixels[:n_train],
        x_test=found.pixels[n_train:] if len(test) else None,
        classes=table.classes,
        digest=_identify(digest(known), found.contents, size, data.fit, table.classes),
        fit=data.fit,
        **known,
    )


def _identify(known: str, contents: Sequence[str], size: int, fit: str, classes: Any) -> str:
    """The identity of the data: every file's content, how it is read, and what is known of it."""
    state = hashlib.sha256(f"{known} {size} {fit} {'|'.join(classes)};".encode())
    state.update("".join(contents).encode())
    return state.hexdigest()


def _refuse_file_settings(data: Data) -> None:
    for name in ("images", "unlabeled_images", "votes", "image_size"):
        if getattr(data, name) is not None:
            raise UsageError(
                f"data.{name} goes with a table or a folder of images; {data.source!r} is neither"
            )
