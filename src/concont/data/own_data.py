"""Data of a user's own: looked at, and loaded, whether arrays in a file or images with a table."""

import hashlib
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concont.data import sources
from concont.data.mapped_arrays import DAMAGE, read_shape
from concont.data.mat import read_mat_shape
from concont.data.sources import UNKNOWN, Dataset, Images, Labels, digest
from concont.errors import ConcontError, DataError, UsageError
from concont.images.cache import load_images
from concont.images.files import read_size
from concont.runs.settings import NAMED_SOURCES, Data
from concont.tables.table import ImageTable, read_images_table

TABLES = (".csv", ".parquet")
LARGEST = 64  # pixels: the side that image files are given unless a user asks for another
LOOKED_AT = 100  # images whose size is read to choose one
CHANNELS = 3

Report = Callable[[int, int], None]  # images read, of how many


@dataclass(frozen=True)
class OwnData:
    """What settings depend on: how many rows there are, and what one is like."""

    rows: int
    shape: tuple[int, ...]  # (H, W, channels), or (D,) of features
    from_files: bool = False  # images that are made the size that is asked for

    @property
    def of_features(self) -> bool:
        """Whether a row is one of features, and no image."""
        return len(self.shape) == 1


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
    table = open_table(data)
    _open.cache_clear()  # nobody asks for it again
    return load_table(data, table, report)


def measure_data(data: Data) -> OwnData | None:
    """What the data of these settings is like; None: cannot be told yet.

    What is wrong with the data is told when it is loaded.
    """
    if holds_image_files(data.source):
        table = open_table(data)
        size = data.image_size or choose_size(table)
        return OwnData(int((~table.is_test).sum()), (size, size, CHANNELS), from_files=True)
    try:
        shape = _read_shape(Path(data.source))
    except (KeyError, ConcontError, *DAMAGE):
        return None
    return OwnData(shape[0], tuple(shape[1:])) if len(shape) > 1 else None


def _read_shape(path: Path) -> tuple[int, ...]:
    """Of the inputs in a file of arrays; empty where it is none."""
    if path.suffix == ".npz":
        return read_shape(path, "x_train")
    return read_mat_shape(path) if path.suffix == ".mat" else ()


def open_table(data: Data) -> ImageTable:
    """The table of these settings: a file, a folder that has one, or votes on a folder's images."""
    source = Path(data.source)
    if data.votes is not None and not source.is_dir():
        raise UsageError(f"--votes go with a folder of images; {source} is none")
    if data.votes is not None and data.images is not None:
        raise UsageError("--votes name the images of the folder --data; leave out --images")
    paths = (source, data.images, data.unlabeled_images, data.votes)
    full = [None if path is None else Path(path).absolute() for path in paths]
    written = tuple(path.stat().st_mtime_ns for path in full if path is not None and path.exists())
    return _open(*full, data.min_votes, written)


@lru_cache(maxsize=1)
def _open(
    source: Path,
    images: Path | None,
    unlabeled: Path | None,
    votes: Path | None,
    min_votes: int,
    written: tuple[int, ...],
) -> ImageTable:
    """Read once where it is first measured and then loaded; written: when the files changed."""
    return read_images_table(source, images, unlabeled, votes, min_votes)


def choose_size(table: ImageTable) -> int:
    """The side that images are given: the usual one of the first of them, but at most LARGEST."""
    return choose_side(table.paths(np.flatnonzero(~table.is_test)[:LOOKED_AT]))


def choose_side(paths: Sequence[str | Path]) -> int:
    """The same of image files without a table."""
    sides = []
    for path in paths[:LOOKED_AT]:
        try:
            sides.append(min(read_size(path)))
        except ConcontError:  # told when it is loaded
            continue
    return min(LARGEST, max(8, round(statistics.median(sides)))) if sides else LARGEST


def load_table(data: Data, table: ImageTable, report: Report | None = None) -> Dataset:
    """The pixels of a table's images, from the cache where they are, with what is known of them."""
    order = np.argsort(table.is_test, kind="stable")  # the training images come first
    n_train = int((~table.is_test).sum())
    size = data.image_size or choose_size(table)
    paths = table.paths(order)
    found = load_images(
        *(paths, (size, size), CHANNELS, data.fit),
        report=report,
        describe=lambda row: table.describe_image(int(order[row])),
    )
    train, test = order[:n_train], order[n_train:]
    _refuse_copies(table, order, found.contents, n_train)
    known: dict[str, Any] = {
        "candidates": table.candidates[train],
        "y_train": table.labels[train],
        "y_test": table.labels[test] if len(test) else None,
    }
    weights = None if table.votes is None else table.votes.dense(train).astype(np.float32)
    return Dataset(
        x_train=found.pixels[:n_train],
        x_test=found.pixels[n_train:] if len(test) else None,
        classes=table.classes,
        digest=_identify(
            digest(known | {"candidate_weights": weights}),
            *(found.contents, size, data.fit, table.classes),
        ),
        fit=data.fit,
        names=tuple(table.names(train)),
        weights=weights,
        **known,
    )


def load_labelled_images(data: Data, classes: Sequence[str]) -> tuple[Images, Labels]:
    """The images of a table that a run of these classes can be measured on, and their labels.

    They are the rows of the split `test`, or where there are none all that have a label.
    """
    source, images = Path(data.source), None if data.images is None else Path(data.images)
    table = read_images_table(source, images, to_measure=classes)
    rows = np.flatnonzero(table.is_test if table.is_test.any() else table.labels != UNKNOWN)
    if not len(rows):
        raise DataError(f"{source}: no row has a label to measure against")
    size = data.image_size or choose_size(table)
    found = load_images(
        *(table.paths(rows), (size, size), CHANNELS, data.fit),
        describe=lambda row: table.describe_image(int(rows[row])),
    )
    places = {name: place for place, name in enumerate(classes)}
    labels = [places[table.classes[label]] for label in table.labels[rows]]
    return found.pixels, np.array(labels, dtype=np.int64)


def _refuse_copies(
    table: ImageTable, order: NDArray[np.int64], contents: Sequence[str], n_train: int
) -> None:
    """Refuse a test image that is trained on under another name."""
    trained = {content: row for row, content in enumerate(contents[:n_train])}
    for place, content in enumerate(contents[n_train:], n_train):
        if content in trained:
            first, second = (int(order[row]) for row in (trained[content], place))
            raise DataError(
                f"{table.describe_image(second)} is to be tested on, and has the same content as "
                f"{table.describe_image(first)}, which is to be trained on"
            )


def _identify(known: str, contents: Sequence[str], size: int, fit: str, classes: Any) -> str:
    """The identity of the data: every file's content, how it is read, and what is known of it."""
    state = hashlib.sha256(f"{known} {size} {fit} {'|'.join(classes)};".encode())
    state.update("".join(contents).encode())
    return state.hexdigest()


def _refuse_file_settings(data: Data) -> None:
    for name in ("images", "unlabeled_images", "votes", "image_size", "fit"):
        if getattr(data, name) != getattr(Data, name):
            there = data.source in NAMED_SOURCES or Path(data.source).exists()
            missing = "" if there else ": there is no such file or folder"
            raise UsageError(
                f"data.{name} goes with a table or a folder of images; {data.source!r} is "
                f"neither{missing}"
            )
