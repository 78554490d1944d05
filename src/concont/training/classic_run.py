"""Runs without a network: features of the rows, one fit, and the same folder as any other run."""

import logging
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from concont.classic.options import Classic, Parm, classifier
from concont.data import sources
from concont.data.problem import Problem, pose
from concont.device import choose_device
from concont.errors import DataError, UsageError
from concont.runs.folder import RunFolder
from concont.runs.settings import Settings
from concont.training.loop import Progress
from concont.training.recorder import LINE, Recorder

if TYPE_CHECKING:
    from concont.classic.estimator import CandidateClassifier

log = logging.getLogger("concont")
DETAILS = {  # what a summary says of a fit, and which attribute of the classifier holds it
    "rounds": "n_iter_",
    "lam": "lam_",
    "mu": "mu_",
    "gain": "gain_",
    "gap": "gap_",
}


@dataclass(frozen=True)
class Fit:
    """A run without a network that is ready to start; nothing is written yet."""

    settings: Settings
    options: Classic
    folder: RunFolder
    problem: Problem
    resumed: bool = False  # from its start, since there is no checkpoint
    epochs = None


def prepare(
    settings: Settings,
    folder: RunFolder,
    data: sources.Dataset | None = None,
    resumed: bool = False,
) -> Fit:
    """Load the data and pose the problem; refuse what cannot be learned from."""
    method = settings.method
    if not isinstance(method, Classic):
        raise UsageError(f"{method.name} trains a network")
    choose_device(settings.train.device)
    dataset = data or sources.load(settings.data.source, settings.data.root)
    problem = pose(dataset, settings.data)
    if problem.candidates.all():
        raise DataError("every candidate set holds all classes: there is nothing to learn from")
    searches = isinstance(method, Parm) and "cv" in (method.lam, method.mu)
    if searches and problem.n_partial < 2:
        raise DataError("lam and mu cannot be searched with a single partial row; give them")
    return Fit(settings, method, folder, problem, resumed)


def execute(job: Fit) -> Iterator[Progress]:
    """Compute the features, fit, measure, and write the run folder: all in one step."""
    from concont.classic.features import features

    problem, device = job.problem, job.settings.train.device
    recorder = Recorder(
        job.folder, job.settings, problem, choose_device(device), since=0 if job.resumed else None
    )
    try:
        start = time.perf_counter()
        size: int = job.options.size
        rows = features(problem.images, size, device)
        tests = None if problem.test_images is None else features(problem.test_images, size, device)
        seen = time.perf_counter()
        model = classifier(job.options, device, job.settings.train.seed)
        with _in_plain_words(job.options.name):
            model.fit(rows, problem.candidates)
        fitted = time.perf_counter()
        predicted = None if tests is None else model.predict(tests)
        end = time.perf_counter()
        spent = {"features": seen - start, "fit": fitted - seen, "evaluation": end - fitted}
        row = _row(problem, model.labels_, predicted, end - start)
        recorder.add(row)
        details = {name: getattr(model, attribute, None) for name, attribute in DETAILS.items()}
        details["peak_gpu_memory_gb"] = _peak(choose_device(device))
        tensors = {name: torch.from_numpy(array) for name, array in model.arrays().items()}
        recorder.finish(
            tensors,
            steps=getattr(model, "steps_", None),
            seconds=end - start,
            seconds_by=spent,
            details=details,
        )
        yield Progress(step=1, total=1, epoch=1, epoch_end=True, row=row)
    finally:
        recorder.close()


def restore(
    settings: Settings, arrays: dict[str, NDArray[Any]], device: str
) -> "CandidateClassifier":
    """The fitted classifier of a finished run."""
    assert isinstance(settings.method, Classic)
    choose_device(device)
    for name in needed(settings.method):
        if name not in arrays:
            raise DataError(f"model.safetensors holds no {name}, so nothing can be predicted")
    model = classifier(settings.method, device, settings.train.seed)
    model.set_arrays(arrays)
    return model


def needed(options: Classic) -> tuple[str, ...]:
    """The arrays of a fitted classifier that a prediction cannot do without."""
    own = ("coef_",) if isinstance(options, Parm) else ("_rows", "_label", "_partial")
    return ("classes_", "n_features_in_", *own)


@contextmanager
def _in_plain_words(name: str) -> Iterator[None]:
    """Warnings of a fit go to the log, each once; what it fails at is an error in one line."""
    with warnings.catch_warnings(record=True) as caught:
        try:
            yield
        except (ValueError, torch.linalg.LinAlgError) as error:  # type: ignore[attr-defined]
            reason = " ".join(str(error).split())
            raise DataError(f"{name} cannot learn from this data: {reason}") from error
    for message in dict.fromkeys(str(warning.message) for warning in caught):
        log.warning("%s", message)


def _row(
    problem: Problem, labels: NDArray[Any], predicted: NDArray[Any] | None, seconds: float
) -> dict[str, Any]:
    """The one line of metrics; resolved labels are held against the truth for this log alone."""
    known, accuracy = problem.truth >= 0, None
    right = labels[known] == problem.truth[known]
    resolved = float(right.mean()) if len(right) else None
    if predicted is not None and problem.test_labels is not None:
        accuracy = float(np.mean(predicted == problem.test_labels))
    return {
        **dict.fromkeys(LINE),
        "epoch": 1,
        "step": 1,
        "seconds": seconds,
        "images_per_s": len(problem.rows) / seconds,
        "pseudo_accuracy": resolved,
        "accuracy": accuracy,
        "accuracy_best": accuracy,
    }


def _peak(device: torch.device) -> float | None:
    return torch.cuda.max_memory_allocated(device) / 1e9 if device.type == "cuda" else None
