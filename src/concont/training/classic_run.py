"""A run without a network: features of the rows, and one fit; and the predictor that it leaves."""

import logging
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from concont.classic.features import compute_features
from concont.classic.options import Classic
from concont.data import sources
from concont.data.mapped_arrays import RowsOf
from concont.data.own_data import load_data
from concont.data.problem import Problem, make_problem
from concont.device import choose_device
from concont.errors import DataError, UsageError
from concont.runs.folder import RunFolder
from concont.runs.settings import Settings
from concont.training.loop import Progress
from concont.training.predictor import check_inputs_fit
from concont.training.quality import evaluate_labels
from concont.training.recorder import Recorder

if TYPE_CHECKING:
    from concont.classic.estimator import CandidateClassifier

log = logging.getLogger("concont")
PHASES = ("features", "fit", "evaluation")
DETAILS = {  # what a summary says of a fit, and which attribute of the classifier holds it
    "rounds": "n_iter_",
    "lam": "lam_",
    "mu": "mu_",
    "gain": "gain_",
    "gap": "gap_",
}


@dataclass(frozen=True)
class ClassicRun:
    """A run without a network that is ready to start; nothing is written yet."""

    settings: Settings
    options: Classic
    folder: RunFolder
    problem: Problem
    resumed: bool = False  # from its start, since there is no checkpoint
    epochs = None

    def execute(self, stop: Callable[[], bool] = lambda: False) -> Iterator[Progress]:
        """Compute the features, fit, measure, and write the run folder: all in one step.

        So there is no moment to ask `stop` at.
        """
        device, since = choose_device(self.settings.train.device), 0 if self.resumed else None
        recorder = Recorder(self.folder, self.settings, self.problem, device, since=since)
        try:
            row = self._fit(recorder)
            yield Progress(step=1, total=1, epoch=1, epoch_end=True, row=row)
        finally:
            recorder.close()

    def _fit(self, recorder: Recorder) -> dict[str, Any]:
        """Fit and record; returns the one line of metrics."""
        problem, device, size = self.problem, self.settings.train.device, self.options.size
        times = [time.perf_counter()]
        rows = compute_features(np.asarray(problem.images), size, device)
        held = problem.test_images
        tests = None if held is None else compute_features(np.asarray(held), size, device)
        times.append(time.perf_counter())
        classifier = self.options.make_classifier(device, self.settings.train.seed)
        with _in_plain_words(self.options.name):
            classifier.fit(rows, problem.candidates)
        times.append(time.perf_counter())
        predicted = None if tests is None else classifier.predict(tests)
        times.append(time.perf_counter())
        row = _make_row(problem, classifier.labels_, predicted, times[-1] - times[0])
        recorder.add(row)
        details = {name: getattr(classifier, own, None) for name, own in DETAILS.items()}
        details["peak_gpu_memory_gb"] = _peak_memory(choose_device(device))
        shape = problem.images.shape[1:]
        recorder.finish(
            ClassicPredictor(problem.classes, shape, self.options, classifier).weights(),
            steps=getattr(classifier, "steps_", None),
            seconds=times[-1] - times[0],
            seconds_by=dict(zip(PHASES, np.diff(times).tolist(), strict=True)),
            details=details,
        )
        return row


def prepare(
    settings: Settings,
    folder: RunFolder,
    data: sources.Dataset | None = None,
    model: nn.Module | None = None,
    resumed: bool = False,
) -> ClassicRun:
    """Load the data and pose the problem; refuse what cannot be learned from."""
    options = cast(Classic, settings.method)  # as its trainer's name says
    if model is not None:
        raise UsageError(f"{options.name} trains no network; leave the model out")
    choose_device(settings.train.device)
    dataset = data or load_data(settings.data)
    problem = make_problem(dataset, settings.data)
    if problem.candidates.all():
        raise DataError("every candidate set holds all classes: there is nothing to learn from")
    if problem.n_partial < options.fewest_partial:
        raise DataError("lam and mu cannot be searched with a single partial row; give them")
    if resumed:
        folder.refuse_other_data(problem.digest, settings.data.source)
    return ClassicRun(settings, options, folder, problem, resumed)


def announce(run: ClassicRun, minutes: float | None = None) -> tuple[ClassicRun, str]:
    """The run, and what it will learn from, in words; how long that takes cannot be told before."""
    if minutes is not None:
        raise UsageError(f"{run.options.name} has no schedule to fit; leave --minutes out")
    problem, of_images = run.problem, run.problem.images.ndim > 2
    kind = (
        f"GIST features of {len(problem.rows):,} images"
        if of_images
        else (f"{len(problem.rows):,} rows of features")
    )
    return run, f"{run.options.name} learns from {kind}, {problem.n_partial:,} with candidate sets"


@dataclass(frozen=True)
class ClassicPredictor:
    """Predicts with a fitted classifier of features."""

    classes: tuple[str, ...]
    shape: tuple[int, ...]  # (H, W, channels), or (D,) of features
    options: Classic
    classifier: "CandidateClassifier"
    gives_probabilities = False

    @classmethod
    def restore(
        cls,
        settings: Settings,
        described: Mapping[str, Any],
        weights: Mapping[str, Tensor],
        device: str = "auto",
        model: nn.Module | None = None,
    ) -> "ClassicPredictor":
        """From a run's settings, `data.json` and weights."""
        options = cast(Classic, settings.method)  # as its trainer's name says
        choose_device(device)
        for name in options.learned:
            if name not in weights:
                raise DataError(f"model.safetensors holds no {name}, so nothing can be predicted")
        classifier = options.make_classifier(device, settings.train.seed)
        classifier.set_arrays({name: tensor.numpy() for name, tensor in weights.items()})
        return cls(tuple(described["classes"]), tuple(described["shape"]), options, classifier)

    @property
    def device(self) -> torch.device:
        """Where the classifier computes."""
        return choose_device(self.classifier.device)

    def predict_proba(self, inputs: ArrayLike) -> NDArray[np.float32]:
        """Refused: neither method gives probabilities."""
        name = self.options.name
        raise UsageError(f"{name} gives no probabilities; in Python, Run.predict gives labels")

    def scores_and_features(
        self, inputs: sources.Inputs | RowsOf
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Refused: neither method gives scores."""
        raise UsageError(f"{self.options.name} gives no class scores")

    def predict(self, inputs: ArrayLike) -> sources.Labels:
        """The class (M,) of each image or row of features; nothing is kept in the cache."""
        return self._label(inputs, keep=False)

    def evaluate(self, inputs: ArrayLike, labels: sources.Labels) -> dict[str, Any]:
        """Accuracies and confusions; the features of the images are kept for the next time."""
        return evaluate_labels(self._label(inputs, keep=True), labels, self.classes)

    def weights(self) -> dict[str, Tensor]:
        """All that the fit has learned."""
        return {name: torch.from_numpy(array) for name, array in self.classifier.arrays().items()}

    def _label(self, inputs: ArrayLike, keep: bool) -> sources.Labels:
        checked = check_inputs_fit(inputs, self.shape)
        rows = compute_features(checked, self.options.size, self.classifier.device, keep)
        labels: sources.Labels = self.classifier.predict(rows)
        return labels


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


def _make_row(
    problem: Problem, labels: NDArray[Any], predicted: NDArray[Any] | None, seconds: float
) -> dict[str, Any]:
    """The one line of metrics; resolved labels are held against the truth for this log alone."""
    known, accuracy, in_sets = problem.truth >= 0, None, None
    right = labels[known] == problem.truth[known]
    resolved = float(right.mean()) if len(right) else None
    if predicted is not None and problem.test_labels is not None:
        accuracy = float(np.mean(predicted == problem.test_labels))
    elif predicted is not None and problem.test_candidates is not None:
        in_sets = float(problem.test_candidates[np.arange(len(predicted)), predicted].mean())
    return {
        "epoch": 1,
        "step": 1,
        "seconds": seconds,
        "images_per_s": len(problem.rows) / seconds,
        "pseudo_accuracy": resolved,
        "accuracy": accuracy,
        "accuracy_best": accuracy,
        "probability_on_sets": None,  # there are no probabilities
        "share_in_sets": in_sets,
    }


def _peak_memory(device: torch.device) -> float | None:
    return torch.cuda.max_memory_allocated(device) / 1e9 if device.type == "cuda" else None
