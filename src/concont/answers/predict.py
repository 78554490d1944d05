"""What a finished run says of image files: found, read, predicted batch by batch, written."""

import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import numpy as np

from concont.api import Run
from concont.data.sources import Images
from concont.errors import DataError, UsageError
from concont.images.files import read_image
from concont.tables.spreadsheet import escape_formula

AT_ONCE = 256  # images in a batch, at most
PIXELS = 2**20  # pixels in a batch, at most, unless one image has more


@dataclass(frozen=True)
class Prediction:
    """The likeliest classes of one image with their probabilities, the likeliest first."""

    image: Path
    top: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Skipped:
    """An image that could not be read, and why."""

    image: Path
    reason: str


def predict_files(run: Run, images: Sequence[Path], top: int = 1) -> Iterator[Prediction | Skipped]:
    """The `top` likeliest classes of each image file, or why it was skipped.

    Only one batch of images is in memory at a time; a batch's skipped images come first.
    """
    run.predictor.require_probabilities()
    if not 1 <= top <= len(run.classes):
        raise UsageError(f"top is {top}; it must be 1 to {len(run.classes)}, the run's classes")
    height, width, _ = run.data["shape"]
    size = max(1, min(AT_ONCE, PIXELS // (height * width)))
    starts = range(0, len(images), size)
    return (result for k in starts for result in _predict_batch(run, images[k : k + size], top))


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
        ranked = [
            {"label": k, "probability": _round_probability(prob)}
            for k, prob in prediction.top[:top]
        ]
        row = {"image": str(prediction.image), **ranked[0], "top": ranked}
        file.write(json.dumps(row) + "\n")


WRITERS = {"csv": write_csv, "jsonl": write_jsonl}


def _predict_batch(run: Run, images: Sequence[Path], top: int) -> Iterator[Prediction | Skipped]:
    height, width, channels = run.data["shape"]
    fit = run.data.get("fit", "stretch")  # not stated where a run was given pixels
    arrays: list[Images] = []
    readable: list[Path] = []
    for path in images:
        try:
            arrays.append(read_image(path, (height, width), channels, fit))
            readable.append(path)
        except DataError as error:
            yield Skipped(path, str(error))
    if not readable:
        return
    probs = run.predict_proba(np.stack(arrays))  # (B, C)
    order = np.argsort(-probs, axis=1, kind="stable")[:, :top]  # (B, top)
    for path, row, best in zip(readable, probs, order, strict=True):
        yield Prediction(path, tuple((run.classes[k], float(row[k])) for k in best))


def _round_probability(prob: float) -> float:
    return float(f"{prob:.6g}")
