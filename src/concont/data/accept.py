"""Arrays as people have them in Python, lists, tensors and DataFrames, made those of an `.npz`."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concont.data.classes import refuse_too_many
from concont.data.sources import UNKNOWN
from concont.data.targets import as_array, encode_targets, is_frame, read_targets
from concont.errors import DataError

IMAGES, LABELS = ("x_train", "x_test"), ("y_train", "y_test")
COLOURS = (1, 3)  # channels
NUMBERS = str.maketrans("uf", "ii")  # kinds of numbers, which are one kind of class


def accept_arrays(given: Mapping[str, Any], where: str = "data") -> dict[str, Any]:
    """The same by the names of an `.npz`, each as the array that it holds there.

    Images of any whole numbers from 0 to 255, channels first or last; candidate sets in every form
    that `read_targets` knows; labels by name, None or NaN where unknown. What is already as it must
    be stays as it is, and what cannot be is refused later, where the whole is checked.
    """
    found = {name: value for name, value in given.items() if value is not None}
    for name in IMAGES:
        if name in found:
            found[name] = to_inputs(found[name])
    try:
        _accept_sets(found)
        _accept_weights(found)
        _accept_labels(found)
    except ValueError as error:
        raise DataError(f"{where}: {error}") from None
    return found


def to_inputs(values: Any) -> Any:
    """Images as uint8, channels last, where that changes no value; features as floats."""
    if np.ma.isMaskedArray(values):
        return values
    try:
        array = as_array(values)
    except ValueError:
        return values  # rows of unequal lengths
    if array.ndim == 2:
        return _to_floats(array)
    if array.dtype != np.uint8 and array.dtype.kind in "iu" and array.size:
        small = array.min() >= 0 and array.max() <= 255
        array = array.astype(np.uint8) if small else array
    if array.ndim == 4 and array.shape[3] not in COLOURS and array.shape[1] in COLOURS:
        array = np.moveaxis(array, 1, 3)
    return array


def _to_floats(array: NDArray[Any]) -> NDArray[Any]:
    if array.dtype in (np.float32, np.float64) or array.dtype.kind not in "biufO":
        return array
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError):
        return array


def _accept_sets(found: dict[str, Any]) -> None:
    """Sets over the classes that are named, or else over those that occur."""
    sets, no_votes = found.get("candidates"), find_no_votes(found.get("candidate_weights"))
    if sets is None or np.ma.isMaskedArray(sets):
        return
    is_ready = isinstance(sets, np.ndarray) and sets.dtype == np.bool_ and sets.ndim == 2
    if is_ready and (no_votes is None or sets.any(axis=1).all()):
        return
    targets = read_targets(sets, "candidates", no_votes)
    if not targets.by_column and "classes" in found:
        _refuse_unknown(targets.classes, as_array(found["classes"]), "candidates")
        targets = encode_targets(sets, as_array(found["classes"]), "candidates")
    elif not targets.by_column:
        found["classes"] = targets.classes
    found["candidates"] = targets.sets


def _accept_weights(found: dict[str, Any]) -> None:
    """Votes as an array; columns that are called as the classes are put in their order."""
    weights = found.get("candidate_weights")
    if weights is None or np.ma.isMaskedArray(weights):
        return
    array = _to_dense(weights)
    if is_frame(weights) and "classes" in found:
        array = array[:, _order_columns(list(weights.columns), as_array(found["classes"]))]
    found["candidate_weights"] = array


def find_no_votes(weights: Any) -> NDArray[np.bool_] | None:
    """The rows (N,) that nobody voted on; None where no votes are given, or what is no matrix."""
    if weights is None or np.ma.isMaskedArray(weights):
        return None
    array = _to_dense(weights)
    return np.asarray(~array.astype(bool).any(axis=1)) if array.ndim == 2 else None


def _to_dense(weights: Any) -> NDArray[Any]:
    if hasattr(weights, "toarray"):
        refuse_too_many(weights.shape[0], math.prod(weights.shape[1:]), "candidate_weights")
        weights = weights.toarray()
    return as_array(weights)


def _order_columns(names: list[Any], classes: NDArray[Any]) -> list[int]:
    """Where the column of each class is; columns called 0, 1, 2, ... are in order already."""
    if set(names) != set(classes.tolist()) and names == list(range(len(classes))):
        return names
    _refuse_unknown(np.array(names, dtype=object), classes, "candidate_weights")
    for each in classes.tolist():
        if names.count(each) != 1:
            raise ValueError(f"candidate_weights has {names.count(each)} columns of {each!r}")
    return [names.index(each) for each in classes.tolist()]


def _accept_labels(found: dict[str, Any]) -> None:
    """Labels as places among the classes, -1 where unknown; whole numbers are places already.

    Unless the classes are numbers themselves: then labels are these.
    """
    given = {name: found[name] for name in LABELS if name in found}
    own = {k: _read_labels(v, k) for k, v in given.items() if not np.ma.isMaskedArray(v)}
    texts = [values for values in own.values() if values.dtype.kind == "U"]
    if texts and "classes" not in found:
        found["classes"] = np.unique([each for each in np.concatenate(texts) if each])
    classes = as_array(found["classes"]) if "classes" in found else None
    for name, labels in own.items():
        if classes is not None and _are_alike(labels, classes):
            found[name] = _find_places(labels, classes, name)
        else:
            found[name] = labels
    if classes is not None:
        found["classes"] = np.array([str(each) for each in classes.tolist()])


def _are_alike(labels: NDArray[Any], classes: NDArray[Any]) -> bool:
    """Whether labels are these classes, and not their places: all are names, or all numbers."""
    kinds = [each.dtype.kind.translate(NUMBERS) for each in (labels, classes)]
    return kinds[0] in (kinds[1], "U")


def _read_labels(labels: Any, name: str) -> NDArray[Any]:
    """One label a row: a name, empty where unknown, or a number, -1 where unknown."""
    array = as_array(labels)
    if array.dtype.kind not in "UOf":
        return array
    targets = read_targets(labels, name)
    if not len(targets.classes):  # none of them is known
        return np.full(len(targets.sets), UNKNOWN)
    several = (targets.sets.sum(axis=1) > 1) & ~targets.unlabelled
    if several.any():
        row = int(several.argmax())
        raise ValueError(f"{name} row {row} has several labels; sets of them are `candidates`")
    values: NDArray[Any] = targets.classes[targets.sets.argmax(axis=1)]
    if values.dtype.kind == "f":
        values = values.astype(np.int64)  # whole numbers, which NaN had made floats
    values[targets.unlabelled] = "" if values.dtype.kind == "U" else UNKNOWN
    return values


def _find_places(labels: NDArray[Any], classes: NDArray[Any], name: str) -> NDArray[np.int64]:
    places = {each: place for place, each in enumerate(classes.tolist())}
    unknown = "" if labels.dtype.kind == "U" else UNKNOWN
    _refuse_unknown(np.unique(labels[labels != unknown]), classes, name)
    found = [UNKNOWN if each == unknown else places[each] for each in labels.tolist()]
    return np.array(found, dtype=np.int64)


def _refuse_unknown(names: NDArray[Any], classes: NDArray[Any], where: str) -> None:
    known = set(classes.tolist())
    for each in names.tolist():
        if each not in known:
            raise ValueError(f"{where} holds {each!r}, which is none of the classes")
