"""Where data comes from: named sources, a user's file, or arrays; all checked on the way in."""

import hashlib
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concont.data.classes import name_classes, refuse_too_many
from concont.data.given import NAMES, check_names, take_arrays
from concont.data.mapped_arrays import DAMAGE, list_arrays, read_arrays
from concont.data.mat import read_mat
from concont.data.named import NAMED, default_root, read_source
from concont.errors import DataError, UsageError, printable
from concont.runs.settings import NAMED_SOURCES
from concont.types import LARGEST

UNKNOWN = -1  # a true label that nobody gave
Images = NDArray[np.uint8]
Inputs = NDArray[Any]  # images (N, H, W, channels) uint8, or features (N, D) float
Labels = NDArray[np.int64]


@dataclass(frozen=True)
class Dataset:
    """Images or features and what is known of their labels; checked, known by its content."""

    x_train: Inputs
    y_train: Labels  # (N,) true labels, -1 unknown
    candidates: NDArray[np.bool_] | None  # (N, C) sets as given; None: to be made from y_train
    x_test: Inputs | None
    y_test: Labels | None
    classes: tuple[str, ...]
    digest: str
    fit: str | None = None  # how image files were made square; None: the data came as arrays
    names: tuple[str, ...] | None = None  # (N,) what the training images are called, if anything
    # (N, C) how many voted for each candidate, or their shares; None: nobody counted
    weights: NDArray[np.float32] | None = None


def load(source: str, root: str | None = None) -> Dataset:
    """The data set called `source`, or the `.npz` or `.mat` file at that path."""
    if source == "digits":
        return digits()
    if source in NAMED:
        return _load_named(source, Path(root) if root else default_root())
    if source.endswith(".npz"):
        return read_npz(Path(source))
    if source.endswith(".mat"):
        return from_arrays(read_mat(Path(source)), source)
    names = ", ".join(NAMED_SOURCES)
    raise UsageError(
        f"no data source {source!r}; give one of {names}, an .npz or .mat file, a table of images "
        "(.csv, .parquet), or a folder of them"
    )


def _load_named(name: str, root: Path) -> Dataset:
    """A source by its name, which a result is known by: so it must be that one, and whole."""
    content = read_source(name, root)
    data = read_npz(content) if isinstance(content, Path) else from_arrays(content, name)
    whole = NAMED[name]
    n_train, n_test = len(data.x_train), 0 if data.x_test is None else len(data.x_test)
    if (n_train, n_test) != (whole.n_train, whole.n_test):
        raise DataError(
            f"{name} under {root} has {n_train} images to train on and {n_test} to test; there "
            f"should be {whole.n_train} and {whole.n_test}. Other data is given by its path: "
            f"--data {root / name}.npz"
        )
    return data


def digits() -> Dataset:
    """Scikit-learn's bundled 8x8 digits: 1,437 images to train on and 360 to test, fixed."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    bunch = load_digits()
    images = np.rint(bunch.images * (255 / 16)).astype(np.uint8)
    x_train, x_test, y_train, y_test = train_test_split(
        images, bunch.target, test_size=360, stratify=bunch.target, random_state=0
    )
    arrays = {"x_train": x_train, "y_train": y_train, "x_test": x_test, "y_test": y_test}
    return from_arrays(arrays, "digits")


def read_npz(path: Path) -> Dataset:
    """A user's file; never unpickled."""
    if not path.is_file():
        raise UsageError(f"{path}: no such file")
    if path.stat().st_size == 0:
        raise DataError(f"{path}: the file is empty")
    if not zipfile.is_zipfile(path):
        raise DataError(f"{path}: not an .npz file, or cut short")
    try:
        check_names(list_arrays(path), str(path))
        arrays = read_arrays(path, NAMES)
    except DAMAGE as error:
        raise DataError(f"{path}: damaged or cut short ({printable(error)})") from None
    return from_arrays(arrays, str(path))


def from_arrays(arrays: Mapping[str, Any], where: str = "data") -> Dataset:
    """A checked data set from arrays by name; `where` names them in an error."""
    given = take_arrays(arrays, where)
    if "x_train" not in given:
        raise DataError(f"{where}: no x_train; found {', '.join(given) or 'nothing'}")
    if "y_train" not in given and "candidates" not in given:
        raise DataError(
            f"{where}: neither y_train nor candidates, so there is nothing to learn from"
        )
    x_train = check_inputs(given["x_train"], "x_train", where)
    y_train = _check_labels(given.get("y_train"), len(x_train), "y_train", where)
    candidates = _check_candidates(given.get("candidates"), len(x_train), where)
    x_test, y_test = _check_test_set(given, x_train, where)
    known = {"y_train": y_train} | ({} if y_test is None else {"y_test": y_test})
    columns = None if candidates is None else candidates.shape[1]
    classes = name_classes(given.get("classes"), columns, known, where)
    refuse_too_many(len(x_train), len(classes), where)
    for name, labels in (("y_train", y_train), ("y_test", y_test)):
        check_range(labels, len(classes), name, where)
    names = ("x_train", "y_train", "candidates", "x_test", "y_test")
    checked = (x_train, y_train, candidates, x_test, y_test)
    weights = _check_weights(given.get("candidate_weights"), candidates, where)
    content = dict(zip(names, checked, strict=True)) | {"candidate_weights": weights}
    return Dataset(*checked, classes=classes, digest=digest(content), weights=weights)


def digest(arrays: Mapping[str, NDArray[Any] | None]) -> str:
    """SHA-256 of names, types, shapes and bytes: the identity of the data, wherever it lies."""
    state = hashlib.sha256()
    for name, values in sorted(arrays.items()):
        if values is None:
            continue
        array = np.ascontiguousarray(values)
        state.update(f"{name} {array.dtype.str} {array.shape};".encode())
        state.update(array.data.cast("B") if array.size else b"")
    return state.hexdigest()


def check_inputs(array: NDArray[Any], name: str, where: str) -> Inputs:
    """Images as `check_images` has them, or features: a matrix of finite numbers."""
    if array.ndim != 2:
        return check_images(array, name, where)
    if array.dtype.kind != "f":
        raise DataError(
            f"{where}: {name} is {array.dtype} of shape {array.shape}; it must be floats, N x D "
            "(features), or uint8, N x H x W or N x H x W x 3 (images)"
        )
    if array.size == 0:
        raise DataError(f"{where}: {name} has shape {array.shape}, so there is nothing in it")
    broken = ~np.isfinite(array).all(axis=1)
    if broken.any():
        raise DataError(f"{where}: {name} row {int(broken.argmax())} is not finite")
    return array


def check_images(array: NDArray[Any], name: str, where: str) -> Images:
    """Images as (N, H, W, channels), refused unless uint8 and grey or RGB."""
    shaped = array.ndim == 3 or (array.ndim == 4 and array.shape[3] in (1, 3))
    if array.dtype != np.uint8 or not shaped:
        raise DataError(
            f"{where}: {name} is {array.dtype} of shape {array.shape}; "
            "it must be uint8, N x H x W or N x H x W x 3"
        )
    if array.size == 0:
        raise DataError(f"{where}: {name} has shape {array.shape}, so there is no image in it")
    return array[..., None] if array.ndim == 3 else array


def _check_labels(array: NDArray[Any] | None, rows: int, name: str, where: str) -> Labels:
    if array is None:
        return np.full(rows, UNKNOWN, dtype=np.int64)
    if array.dtype.kind == "f" and np.isnan(array).any():
        raise DataError(f"{where}: {name} has NaN in row {int(np.isnan(array).argmax())}; use -1")
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise DataError(
            f"{where}: {name} is {array.dtype} of shape {array.shape}; it must be N integers"
        )
    if len(array) != rows:
        raise DataError(f"{where}: {name} has {len(array)} rows, its images {rows}")
    return array.astype(np.int64)


def check_test_labels(array: NDArray[Any], rows: int, name: str, where: str) -> Labels:
    """The true labels (N,) of images to measure on: none may be unknown."""
    labels = _check_labels(array, rows, name, where)
    if (labels < 0).any():
        raise DataError(f"{where}: {name} row {int((labels < 0).argmax())} has no label")
    return labels


def _check_candidates(
    array: NDArray[Any] | None, rows: int, where: str
) -> NDArray[np.bool_] | None:
    if array is None:
        return None
    if array.ndim != 2 or array.dtype != np.bool_:
        raise DataError(
            f"{where}: candidates is {array.dtype} of shape {array.shape}; it must be N x C bool"
        )
    if len(array) != rows:
        raise DataError(f"{where}: candidates has {len(array)} rows, x_train {rows}")
    empty = ~array.any(axis=1)
    if empty.any():
        raise DataError(
            f"{where}: candidates row {int(empty.argmax())} is empty "
            f"({int(empty.sum())} such); every row needs at least one class, all = unlabelled"
        )
    return array


def _check_weights(
    array: NDArray[Any] | None, candidates: NDArray[np.bool_] | None, where: str
) -> NDArray[np.float32] | None:
    """Votes, or shares of them: none for a class outside the row's set, some for one inside."""
    if array is None:
        return None
    if candidates is None:
        raise DataError(f"{where}: candidate_weights go with candidates, which are missing")
    if array.dtype.kind not in "iuf" or array.shape != candidates.shape:
        raise DataError(
            f"{where}: candidate_weights is {array.dtype} of shape {array.shape}; it must be "
            f"numbers of shape {candidates.shape}, as candidates"
        )
    for wrong, what in (
        (~np.isfinite(array), "is no finite number"),
        (array < 0, "is negative"),
        (array > LARGEST, f"is more than {LARGEST:g}"),
        ((array > 0) & (array < 1 / LARGEST), f"is less than {1 / LARGEST:g}, yet not 0"),
        ((array > 0) & ~candidates, "lies outside of the row's candidates"),
    ):
        if wrong.any():
            row, column = (int(places[0]) for places in wrong.nonzero())
            raise DataError(
                f"{where}: candidate_weights row {row}, class {column} is "
                f"{array[row, column]:g}, and {what}"
            )
    return array.astype(np.float32)


def _check_test_set(
    given: Mapping[str, NDArray[Any]], x_train: Inputs, where: str
) -> tuple[Inputs | None, Labels | None]:
    if ("x_test" in given) != ("y_test" in given):
        raise DataError(f"{where}: x_test and y_test go together; one of them is missing")
    if "x_test" not in given:
        return None, None
    x_test = check_inputs(given["x_test"], "x_test", where)
    if x_test.shape[1:] != x_train.shape[1:]:
        raise DataError(
            f"{where}: x_test holds rows of {x_test.shape[1:]}, x_train of {x_train.shape[1:]}"
        )
    return x_test, check_test_labels(given["y_test"], len(x_test), "y_test", where)


def check_range(labels: Labels | None, n_classes: int, name: str, where: str) -> None:
    """Refuse labels that are none of the classes."""
    if labels is None:
        return
    wrong = (labels < UNKNOWN) | (labels >= n_classes)
    if wrong.any():
        row = int(wrong.argmax())
        unknown = ", or -1 where unknown" if name == "y_train" else ""
        raise DataError(
            f"{where}: {name} row {row} is {int(labels[row])}; it must be 0 to {n_classes - 1}"
            f"{unknown}"
        )
