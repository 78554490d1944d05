"""What a finished run's network says of its images: what a record alone cannot tell."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import softmax
from torch import nn

from concont.answers.resolution import Resolution, resolve
from concont.api import Run, load
from concont.config.flat_settings import list_places
from concont.data.problem import Problem
from concont.errors import ConcontError, DataError, printable
from concont.report.class_charts import Bin, fill_bins
from concont.report.gallery import Card, Rows, list_rows, make_cards
from concont.report.wording import hide_folders
from concont.runs.folder import RunFolder
from concont.runs.settings import NAMED_SOURCES
from concont.training.quality import evaluate_labels, evaluate_probabilities
from concont.training.trainers import read_run_settings
from concont.types import Plain


@dataclass(frozen=True)
class Measured:
    """Answers beyond the record; what is None or empty is told of in `missing`."""

    resolution: Resolution | None = None
    listed: Rows | None = None  # rows of the review list, the first to look at first
    cards: list[Card] = field(default_factory=list)
    quality: Plain | None = None  # figures of training.quality, of the test images or hold-out
    bins: dict[str, list[Bin]] = field(default_factory=dict)  # before and after calibration
    missing: tuple[str, ...] = ()  # sentences: what, and why


def measure_run(
    path: Path,
    review: int,
    device: str = "auto",
    data: str | None = None,
    images: str | None = None,
    network: nn.Module | None = None,
) -> Measured:
    """All that can still be said of a finished run; what fails is missing, and says why.

    data, images: where the run's data and a table's images lie now, if not where they lay. network:
    of the user's own, of a run that has one.
    """
    missing, places = list[str](), [str(path), data, images]

    def attempt(what: str, work: Callable[[], Any]) -> Any:
        try:
            return work()
        except (ConcontError, OSError) as error:
            said = hide_folders(printable(error), *filter(None, places))
            missing.append(f"{what}: {said}.")
            return None

    run = attempt("Nothing that needs the network", lambda: _load(path, device, network))
    if run is None:
        return Measured(missing=tuple(missing))
    places += list_places(run.settings)
    problem = attempt("No map, review list or confusions", lambda: run.read_problem(data, images))
    if problem is None:
        return Measured(missing=(*missing, *_tell_cure(run, data, images)))
    resolution = attempt("No map and no review list", lambda: resolve(run, problem))
    measured = attempt(
        "No confusions and no calibration", lambda: measure_quality(run, problem, resolution)
    )
    found = measured or Measured()
    if resolution is not None:
        rows = list_rows(resolution.review, review)
        cards = make_cards(resolution, rows, problem.images)
        found = replace(found, resolution=resolution, listed=rows, cards=cards)
    return replace(found, missing=(*missing, *found.missing))


def _load(path: Path, device: str, network: nn.Module | None) -> Run:
    """The run; with the user's own network if it trained one."""
    own = read_run_settings(RunFolder(path)).model.own is not None
    return load(path, device=device, model=network if own else None)


def _tell_cure(run: Run, data: str | None, images: str | None) -> list[str]:
    """What to do where the data has been moved."""
    own = run.settings.data
    if own.source in ("", *NAMED_SOURCES):
        return []
    options = {"--data": data or own.source, "--images": images or own.images}
    gone = [name for name, path in options.items() if path and not Path(path).exists()]
    cure = f"If the data has been moved, say where it lies now: {' and '.join(gone)}."
    return [cure] if gone else []


def measure_quality(run: Run, problem: Problem, resolution: Resolution | None) -> Measured:
    """Who is taken for whom, and how far probabilities can be believed, on images held back."""
    if problem.test_images is None or problem.test_labels is None:
        raise DataError("there is no test set, and no images were held out")
    labels = np.asarray(problem.test_labels)
    if not run.gives_probabilities:
        predicted = run.predict(np.asarray(problem.test_images))
        figures = evaluate_labels(predicted, labels, run.classes)
        why = f"No calibration: {run.settings.method.name} gives labels and no probabilities."
        return Measured(quality=figures, missing=(why,))
    scores, _ = run.predictor.scores_and_features(problem.test_images)
    probs = softmax(scores, axis=1)
    bins = {"as trained": fill_bins(probs, labels)}
    calibration = None if resolution is None else resolution.calibration
    if calibration is not None:
        calibrated = softmax(scores / calibration.temperature, axis=1)
        bins["calibrated"] = fill_bins(calibrated, labels)
    return Measured(quality=evaluate_probabilities(probs, labels, run.classes), bins=bins)
