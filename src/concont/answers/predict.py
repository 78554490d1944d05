"""What a finished run says of image files: found, read, predicted batch by batch, written."""

import csv
import json
import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from concont.api import Run
from concont.data.sources import Images
from concont.errors import DataError, UsageError

Image.init()
# Pillow knows some formats by name only, and starts another program for EPS.
UNREAD = {"BUFR", "EPS", "GRIB", "HDF5", "MPEG", "WMF"}
FORMATS = tuple(name for name in Image.ID if name not in UNREAD)
SUFFIXES = {suffix for suffix, name in Image.registered_extensions().items() if name in FORMATS}
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


def find_images(paths: Sequence[Path]) -> list[Path]:
    """Files as they are given; for a folder, the images in it and below it, sorted.

    Hidden files and folders below a given one are left out.
    """
    found: list[Path] = []
    for path in paths:
        found += _list_images(path) if os.path.isdir(path) else [path]
    if not found:
        raise UsageError(f"no image in {', '.join(map(str, paths))}")
    return found


def read_image(path: Path, shape: Sequence[int]) -> Images:
    """An image file, turned upright, as uint8 of the shape (H, W, channels).

    Other sizes are resized, bilinear with antialiasing; a file that cannot be read is a DataError.
    """
    height, width, channels = shape
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # damaged metadata: the pixels can still be read
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(path, formats=FORMATS) as file:
                upright = _to_eight_bits(ImageOps.exif_transpose(file))
            image = upright.convert("RGB" if channels == 3 else "L")
            if image.size != (width, height):
                image = image.resize((width, height), Image.Resampling.BILINEAR)
    except Exception as error:  # Pillow raises errors of every kind on a damaged file
        raise DataError(_explain(error)) from None
    return np.asarray(image, dtype=np.uint8).reshape(height, width, channels)


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
    """A header and a row a prediction: image, label, probability, label_2, probability_2, ..."""
    writer = csv.writer(file, lineterminator="\n")
    ranks = ["", *(f"_{rank}" for rank in range(2, top + 1))]
    writer.writerow(["image", *(f"{name}{k}" for k in ranks for name in ("label", "probability"))])
    for prediction in predictions:
        cells = (
            cell for label, prob in prediction.top for cell in (label, _round_probability(prob))
        )
        writer.writerow([prediction.image, *cells])


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


def _list_images(folder: Path) -> list[Path]:
    found: list[Path] = []
    for parent, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        paths = [Path(parent, name) for name in files if not name.startswith(".")]
        found += [path for path in paths if path.suffix.lower() in SUFFIXES]
    return sorted(found)


def _predict_batch(run: Run, images: Sequence[Path], top: int) -> Iterator[Prediction | Skipped]:
    arrays: list[Images] = []
    readable: list[Path] = []
    for path in images:
        try:
            arrays.append(read_image(path, run.data["shape"]))
            readable.append(path)
        except DataError as error:
            yield Skipped(path, str(error))
    if not readable:
        return
    probs = run.predict_proba(np.stack(arrays))  # (B, C)
    order = np.argsort(-probs, axis=1, kind="stable")[:, :top]  # (B, top)
    for path, row, best in zip(readable, probs, order, strict=True):
        yield Prediction(path, tuple((run.classes[k], float(row[k])) for k in best))


def _to_eight_bits(image: Image.Image) -> Image.Image:
    """An image of 8 bits a channel; Pillow itself would cut deeper ones off at 255."""
    if image.mode.startswith("I;16"):
        return Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    if image.mode in ("I", "F"):
        raise DataError(f"its pixels are of mode {image.mode}; save it with 8 bits a channel")
    return image


def _explain(error: Exception) -> str:
    """Why an image could not be read, in one line."""
    if isinstance(error, UnidentifiedImageError):
        return "not an image that can be read"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return " ".join(str(error).split()) or type(error).__name__


def _round_probability(prob: float) -> float:
    return float(f"{prob:.6g}")
