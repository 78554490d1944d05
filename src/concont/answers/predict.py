"""What a run, or the file it was exported to, says of image files: batch by batch, and written."""

import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TextIO

import numpy as np
from numpy.typing import NDArray

from concont.errors import DataError, UsageError
from concont.images.files import Fit, read_image
from concont.tables.spreadsheet import escape_formula

AT_ONCE = 256  # images in a batch, at most
PIXELS = 2**20  # pixels in a batch, at most, unless one image has more
ROWS = 10_000  # of features in a batch, at most

Top = tuple[tuple[str, float | None], ...]  # names of classes with their probabilities


class Labeler(Protocol):
    """What labels images: a run that was read back, or a file that one was exported to."""

    @property
    def classes(self) -> tuple[str, ...]:
        """Their names, in the order of the labels and of the probabilities."""
        ...

    @property
    def shape(self) -> tuple[int, ...]:
        """Of an input: (H, W, channels) of an image, or (D,) of a row of features."""
        ...

    @property
    def fit(self) -> Fit:
        """How an image file is given that shape."""
        ...

    @property
    def gives_probabilities(self) -> bool:
        """Whether it says more than a label."""
        ...

    def predict_proba(self, images: NDArray[Any]) -> NDArray[np.float32]:
        """Class probabilities (M, C) of images (M, H, W, channels) or features, if it gives any."""
        ...

    def predict(self, images: NDArray[Any]) -> NDArray[np.int64]:
        """The class (M,) of each input, by its place in `classes`."""
        ...


@dataclass(frozen=True)
class Prediction:
    """The likeliest classes of one image with their probabilities, the likeliest first.

    Of a method that gives labels alone it is one class, and its probability None. A row of features
    is named by its number, from 0.
    """

    image: Path | int
    top: Top


@dataclass(frozen=True)
class Skipped:
    """An image that could not be read, and why."""

    image: Path
    reason: str


def predict_files(
    labeler: Labeler, images: Sequence[Path], top: int = 1
) -> Iterator[Prediction | Skipped]:
    """The `top` likeliest classes of each image file, or why it was skipped.

    Only one batch of images is in memory at a time; a batch's skipped images come first.
    """
    refuse_top(labeler, top)
    if len(labeler.shape) != 3:
        raise UsageError("the run learned from rows of features, so it labels no image files")
    height, width, _ = labeler.shape
    size = max(1, min(AT_ONCE, PIXELS // (height * width)))
    starts = range(0, len(images), size)
    return (result for k in starts for result in _predict_batch(labeler, images[k : k + size], top))


def predict_rows(
    labeler: Labeler, rows: NDArray[np.floating], top: int = 1
) -> Iterator[Prediction]:
    """The `top` likeliest classes of each row of features (M, D), a part at a time."""
    refuse_top(labeler, top)
    starts = range(0, len(rows), ROWS)
    ranked = (each for k in starts for each in rank_classes(labeler, rows[k : k + ROWS], top))
    return map(Prediction, range(len(rows)), ranked)


def refuse_top(labeler: Labeler, top: int) -> None:
    """There must be as many classes to name, and probabilities to rank them by."""
    if not 1 <= top <= len(labeler.classes):
        raise UsageError(f"top is {top}; it must be 1 to {len(labeler.classes)}, the run's classes")
    if top > 1 and not labeler.gives_probabilities:
        raise UsageError(f"top is {top}; the run's method gives a label alone, so it must be 1")


def rank_classes(labeler: Labeler, images: NDArray[Any], top: int) -> list[Top]:
    """The `top` likeliest classes of each image, or row of features, the likeliest first."""
    if not labeler.gives_probabilities:
        return [((labeler.classes[k], None),) for k in labeler.predict(images)]
    return [rank(labeler.classes, row, top) for row in labeler.predict_proba(images)]


def rank(classes: Sequence[str], probs: NDArray[np.float32], top: int) -> Top:
    """The `top` likeliest classes of probabilities (C,), the likeliest first."""
    order = np.argsort(-probs, kind="stable")[:top]
    return tuple((classes[k], float(probs[k])) for k in order)


def describe_top(top: Top) -> dict[str, Any]:
    """What JSON has of an image's classes: label, probability, and all of them under `top`."""
    ranked = [{"label": k, "probability": _round_probability(prob)} for k, prob in top]
    return {**ranked[0], "top": ranked}


def write_csv(predictions: Iterable[Prediction], file: TextIO, top: int) -> None:
    """A header and a row a prediction: image, label, probability, label_2, probability_2, ...

    Names that a spreadsheet would run as formulas are written by `escape_formula`.
    """
    writer = csv.writer(file, lineterminator="\n")
    ranks = ["", *(f"_{rank}" for rank in range(2, top + 1))]
    writer.writerow(["image", *(f"{name}{k}" for k in ranks for name in ("label", "probability"))])
    for prediction in predictions:
        cells = (
            cell
            for label, prob in prediction.top
            for cell in (escape_formula(label), _round_probability(prob))
        )
        writer.writerow([escape_formula(str(prediction.image)), *cells])


def write_jsonl(predictions: Iterable[Prediction], file: TextIO, top: int) -> None:
    """A JSON object a line: image, label, probability, and all `top` classes under `top`."""
    for prediction in predictions:
        row = {"image": str(prediction.image), **describe_top(prediction.top[:top])}
        file.write(json.dumps(row) + "\n")


WRITERS = {"csv": write_csv, "jsonl": write_jsonl}


def _predict_batch(
    labeler: Labeler, images: Sequence[Path], top: int
) -> Iterator[Prediction | Skipped]:
    height, width, channels = labeler.shape
    arrays: list[NDArray[np.uint8]] = []
    readable: list[Path] = []
    for path in images:
        try:
            arrays.append(read_image(path, (height, width), channels, labeler.fit))
            readable.append(path)
        except DataError as error:
            yield Skipped(path, str(error))
    if readable:
        ranked = rank_classes(labeler, np.stack(arrays), top)
        yield from map(Prediction, readable, ranked)


def _round_probability(prob: float | None) -> float | None:
    return None if prob is None else float(f"{prob:.6g}")
