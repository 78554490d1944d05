"""What a classifier is given to learn from or to label: arrays, or the paths of image files."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from concont.classic.estimator import FLOATS, check_setting
from concont.data.accept import to_inputs
from concont.data.own_data import choose_side
from concont.data.sources import check_images
from concont.data.targets import as_array, refuse_masks
from concont.errors import DataError, UsageError, printable
from concont.images.cache import load_images
from concont.images.files import Fit, read_image
from concont.training.predictor import Predictor

CHANNELS = 3  # of images in files
AT_ONCE = 1000  # files that are read before they are predicted
MOST_PIXELS = 2**13  # of a side
FIT: Fit = "crop"  # how an image is made square


@contextmanager
def as_value_errors() -> Iterator[None]:
    """What is wrong with data or settings, as scikit-learn's users expect it."""
    try:
        yield
    except (DataError, UsageError) as error:
        raise ValueError(str(error)) from error


def read_to_fit(estimator: BaseEstimator, X: Any, image_size: int | None) -> NDArray[Any]:
    """Images (N, H, W, channels) or rows of features (N, D); notes how many features there are.

    image_size: side that image files are given; None: their own.
    """
    if image_size is not None:
        check_setting("image_size", image_size, 1, MOST_PIXELS, whole=True)
    if not holds_paths(X):
        return _read_array(estimator, X, fits=True)
    paths = [str(path) for path in X]
    side = choose_side(paths) if image_size is None else int(image_size)
    pixels = load_images(paths, (side, side), CHANNELS, FIT).pixels
    _forget_features(estimator)
    return pixels


def read_in_parts(estimator: BaseEstimator, X: Any, predictor: Predictor) -> Iterable[NDArray[Any]]:
    """Inputs like those that were learned from; files a part at a time."""
    if not holds_paths(X):
        return [_read_array(estimator, X, fits=False)]
    if len(predictor.shape) != 3:
        raise UsageError("it learned from rows of features, so it labels no image files")
    paths = [str(path) for path in X]
    starts = range(0, len(paths), AT_ONCE)
    return (_read_files(paths[start : start + AT_ONCE], predictor.shape) for start in starts)


def holds_paths(X: Any) -> bool:
    """A list, an array or a column of the paths of files."""
    if isinstance(X, str | Path) or not hasattr(X, "__len__") or hasattr(X, "toarray"):
        return False
    if isinstance(X, list | tuple):
        return len(X) > 0 and isinstance(X[0], str | Path)
    array = as_array(X)
    return array.ndim == 1 and len(array) > 0 and isinstance(array.tolist()[0], str | Path)


def _read_array(estimator: BaseEstimator, X: Any, fits: bool) -> NDArray[Any]:
    refuse_masks(X)
    if hasattr(X, "detach"):
        X = as_array(X)
    if not hasattr(X, "toarray") and _count_axes(X) > 2:
        images = check_images(to_inputs(X), "X", "fit" if fits else "predict")
        if fits:
            _forget_features(estimator)
        return images
    rows: NDArray[Any] = validate_data(estimator, X, dtype=FLOATS, reset=fits)
    return rows


def _forget_features(estimator: BaseEstimator) -> None:
    """Those of an earlier fit on rows, once images are read: a failure before spoils nothing."""
    for name in ("n_features_in_", "feature_names_in_"):
        vars(estimator).pop(name, None)


def _count_axes(X: Any) -> int:
    try:
        return as_array(X).ndim
    except ValueError:
        raise ValueError("X holds rows, or images, of unequal sizes") from None


def _read_files(paths: Sequence[str], shape: tuple[int, ...]) -> NDArray[np.uint8]:
    height, width, channels = shape
    images = []
    for path in paths:
        try:
            images.append(read_image(path, (height, width), channels, FIT))
        except DataError as error:
            raise DataError(f"{printable(path)}: {error}") from None
    return np.stack(images)
