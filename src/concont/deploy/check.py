"""Whether an exported file answers as the network that it was made from, on images of the run."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concont.api import Run
from concont.data.mapped_arrays import RowsOf
from concont.data.problem import Problem
from concont.deploy.formats import Compute
from concont.errors import ConcontError

BATCHES = (1, 2, 7)
IMAGES = 42  # that are compared in each of the batches
TOLERANCE = 1e-4


@dataclass(frozen=True)
class Sample:
    """Some inputs of a run, images (M, H, W, channels) or features, and where they come from."""

    images: NDArray[Any]
    kind: str  # "test", "holdout", "training", or "random"


@dataclass(frozen=True)
class Comparison:
    """How far the answers of a file lie from those of the network at most, and on which images."""

    difference: float
    images: int
    kind: str


def read_problem_if_there(run: Run) -> Problem | None:
    """What the run learned from; None where it cannot be read any more."""
    try:
        return run.read_problem()
    except (ConcontError, OSError):
        return None


def take_sample(run: Run, problem: Problem | None, size: int = IMAGES) -> Sample:
    """Test images, else training images, from all over the set; else random ones."""
    if problem is None:
        return Sample(_draw(size, run.shape), "random")
    held, kind = problem.test_images, problem.evaluated_on
    if held is None or kind is None:
        held, kind = problem.images, "training"
    found = spread(held, size)
    return Sample(found.astype(np.float32) if found.ndim == 2 else found, kind)


def _draw(size: int, shape: tuple[int, ...]) -> NDArray[Any]:
    stream = np.random.default_rng(0)
    if len(shape) == 1:
        return stream.standard_normal((size, *shape), dtype=np.float32)
    return stream.integers(0, 256, (size, *shape), dtype=np.uint8)


def spread(rows: NDArray[Any] | RowsOf, size: int) -> NDArray[Any]:
    """So many rows at equal distances, or all where there are fewer."""
    chosen = np.linspace(0, len(rows) - 1, min(size, len(rows))).round().astype(np.int64)
    return np.ascontiguousarray(rows[chosen])


def compare(
    expected: Compute, found: Compute, sample: Sample, batches: Sequence[int] = BATCHES
) -> Comparison:
    """The largest difference of any probability or logit; a ConcontError if it is too large.

    Logits above 1 count by their size: a float has about seven digits.
    """
    images, gaps = sample.images, []
    for size in batches:
        for start in range(0, len(images), size):
            batch = images[start : start + size]
            for own, other in zip(expected(batch), found(batch), strict=True):
                gaps.append((np.abs(own - other) / np.maximum(1, np.abs(own))).max())
    largest = float(np.max(gaps))
    if not largest <= TOLERANCE:  # nor if it is no number
        raise ConcontError(
            f"the file answers otherwise than the network, by up to {largest:.2g} "
            f"(at most {TOLERANCE:g} is allowed), so it was not kept"
        )
    return Comparison(largest, len(images), sample.kind)
