"""The label of every training image as a finished run resolves it, and how sure it is of each."""

import logging
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import log_softmax, softmax
from torch import Tensor

from concont.answers.calibration import Calibration, fit_calibration
from concont.answers.neighbours import count_neighbours, to_unit_rows
from concont.answers.review import rank_for_review
from concont.answers.votes import JointEstimate, combine
from concont.api import Run
from concont.core.controller import partial_confidence
from concont.data.placement import scale_weights
from concont.data.problem import Problem
from concont.data.sources import UNKNOWN, Labels
from concont.errors import UsageError
from concont.runs.folder import RunFolder
from concont.training import checkpoint
from concont.types import Method, State

log = logging.getLogger("concont")
Floats = NDArray[np.float32]
Booleans = NDArray[np.bool_]
OVERRULES = 0.95  # calibrated probability of one class outside the set


@dataclass(frozen=True)
class Resolution:
    """What a run holds of its N training images; row i of everything is the same image."""

    images: tuple[str, ...]  # (N,) as their table calls them, else their row in the data
    classes: tuple[str, ...]
    candidates: Booleans  # (N, C); all True = unlabelled, but where votes were counted
    partial: Booleans  # (N,) which images have a set that says something, or votes
    label: Labels  # (N,) the resolved class: inside the set, unless that is overruled
    predicted: Labels  # (N,) the likeliest of all classes
    probability: Floats  # (N,) of the label: inside the set, or of all classes where overruled
    outside: Floats  # (N,) the mass outside the set; 0 where unlabelled
    score: Floats  # (N,) p-scores
    confident: Booleans | None  # (N,) score above its class's threshold; None: there are none
    overruled: Booleans  # (N,) the label lies outside the set
    disagreement: Floats  # (N,) share of the neighbours that were resolved otherwise
    review: Labels  # (N,) 1 = to be looked at first
    features: Floats  # (N, D) unit rows
    truth: Labels  # (N,) true labels for measuring alone, -1 unknown
    calibration: Calibration | None  # None: there is no hold-out to fit it on
    votes: JointEstimate | None = None  # of the images with votes; None: there are none

    def __len__(self) -> int:
        return len(self.label)

    def accuracy(self, which: Booleans | None = None) -> float | None:
        """The share of right labels among these images (N,) whose truth is known, if any."""
        known = self.truth != UNKNOWN
        if which is not None:
            known = known & which
        return float((self.label == self.truth)[known].mean()) if known.any() else None


@dataclass(frozen=True)
class Choice:
    """A label for each of N images, from probabilities and candidate sets."""

    label: Labels  # (N,)
    probability: Floats  # (N,) of the label, inside the set or of all classes: see Resolution
    outside: Floats  # (N,) the mass outside the set
    overruled: Booleans  # (N,)


def choose_labels(
    probs: Floats,
    candidates: Booleans,
    overrules: float = OVERRULES,
    doubted: Booleans | None = None,
) -> Choice:
    """The likeliest candidate of each row, or a class outside its set that is nearly certain.

    probs, candidates (N, C). overrules: the probability from which on a class outside is taken.
    doubted (N,): sets that the run did not believe; there the likeliest class is.
    """
    rows = np.arange(len(probs))
    inside = np.where(candidates, probs, 0)
    mass = inside.sum(axis=1)
    label = np.where(candidates, probs, -1).argmax(axis=1)
    with np.errstate(invalid="ignore"):  # a mass that has underflowed to 0: any is as likely
        share = np.where(mass > 0, inside[rows, label] / mass, 1 / candidates.sum(axis=1))
    predicted = probs.argmax(axis=1)
    certain = probs[rows, predicted] >= overrules
    overruled = ~candidates[rows, predicted] & (certain if doubted is None else certain | doubted)
    return Choice(
        np.where(overruled, predicted, label),
        np.where(overruled, probs[rows, predicted], share).astype(np.float32),
        np.where(candidates.all(axis=1), 0, 1 - mass).clip(0, 1).astype(np.float32),
        overruled,
    )


def resolve(run: Run, problem: Problem | None = None) -> Resolution:
    """The label of each of a run's training images, from its network, their sets, its thresholds.

    The label is the likeliest of the image's candidates, unless the network is nearly certain of a
    class outside of the set: such a set is overruled. Where the run held images out, probabilities
    are calibrated on them [2]_; p-scores are those of the run [1]_.

    Parameters
    ----------
    run : Run
        A finished run of a method that gives probabilities.
    problem : Problem, optional
        What the run learned from, `run.read_problem()`, where that has been read already.

    Returns
    -------
    Resolution
        Arrays with a row an image: `label`, `probability`, `outside`, `score`, `confident`,
        `overruled`, `review` and more. `review` 1 is the image to look at first.

    References
    ----------
    .. [1] "Controller-Guided Partial Label Consistency Regularization with Unlabeled Data",
       AAAI 2024, https://doi.org/10.1609/aaai.v38i14.29484
    .. [2] "On Calibration of Modern Neural Networks", ICML 2017,
       https://proceedings.mlr.press/v70/guo17a.html

    Examples
    --------
    >>> import concont
    >>> config = {"recipe": "digits", "train": {"epochs": 1, "device": "cpu"}}
    >>> config["data"] = {"source": "digits"}
    >>> found = concont.resolve(concont.train(config, out="third"))
    >>> len(found), found.candidates.shape
    (1437, (1437, 10))
    """
    if not run.gives_probabilities:
        raise UsageError(
            f"{run.settings.method.name} gives no probabilities, so nothing says how sure it is of "
            "a label; `concont predict` names labels"
        )
    problem = run.read_problem() if problem is None else problem
    scores, features = run.predictor.scores_and_features(problem.images)
    calibration = calibrate_run(run, problem)
    temperature = 1.0 if calibration is None else calibration.temperature
    probs = softmax(scores / temperature, axis=1)
    opinion = _ask_run(run, softmax(scores, axis=1), problem)
    choice = choose_labels(probs, problem.candidates, doubted=opinion.doubted)
    estimate = None
    if problem.weights is not None and problem.voted is not None:
        log_probs = log_softmax(scores / temperature, axis=1)
        given = (problem.candidates, problem.weights, problem.voted)
        choice, estimate = count_votes_in(choice, log_probs, *given)
    unit = to_unit_rows(features)
    neighbours = count_neighbours(unit, choice.label, len(problem.classes))
    return Resolution(
        images=problem.names or tuple(map(str, problem.rows.tolist())),
        classes=problem.classes,
        candidates=problem.candidates,
        partial=problem.partial,
        label=choice.label,
        predicted=probs.argmax(axis=1),
        probability=choice.probability,
        outside=choice.outside,
        score=opinion.score,
        confident=opinion.confident,
        overruled=choice.overruled,
        disagreement=1 - neighbours[np.arange(len(probs)), choice.label],
        review=rank_for_review(probs, neighbours, problem.candidates, choice.label),
        features=unit,
        truth=problem.truth,
        calibration=calibration,
        votes=estimate,
    )


def count_votes_in(
    choice: Choice, log_probs: Floats, candidates: Booleans, weights: Floats, voted: Booleans
) -> tuple[Choice, JointEstimate | None]:
    """The same, but images that were voted on get the label of `combine`: docs/votes.md.

    log_probs, candidates, weights (N, C). voted (N,): whose weights are votes; a set alone is none.
    """
    if not voted.any():
        return choice, None
    rows = np.flatnonzero(voted)
    estimate = combine(weights[rows], log_probs[rows])
    label, probability = choice.label.copy(), choice.probability.copy()
    overruled = choice.overruled.copy()
    label[rows], probability[rows] = estimate.label, estimate.probability
    overruled[rows] = ~candidates[rows, estimate.label]
    return Choice(label, probability, choice.outside, overruled), estimate


def calibrate_run(run: Run, problem: Problem) -> Calibration | None:
    """From the images that were held out of the training, if any; never from a test set."""
    if problem.evaluated_on != "holdout":
        return None
    assert problem.test_images is not None
    assert problem.test_labels is not None
    scores, _ = run.predictor.scores_and_features(problem.test_images)
    return fit_calibration(scores, problem.test_labels)


@dataclass(frozen=True)
class Opinion:
    """What a run's method held of its N training rows in the end."""

    score: Floats  # (N,) p-scores
    confident: Booleans | None = None  # (N,) None: the method has no thresholds
    doubted: Booleans | None = None  # (N,) whose sets it did not believe; None: it believed all


def _ask_run(run: Run, probs: Floats, problem: Problem) -> Opinion:
    """The method's own opinion of rows with these probabilities; else their plain p-scores."""
    sets, given = torch.from_numpy(problem.candidates), torch.from_numpy(probs)
    plain = Opinion(partial_confidence(given, sets)[0].numpy())
    method = run.settings.method
    if not isinstance(method, Method):  # code of the user's own, which a run folder never runs
        return plain
    saved = checkpoint.load(RunFolder(run.path), torch.device("cpu"))
    if saved is None:
        log.warning("%s holds no checkpoint, and so no thresholds", run.path)
        return plain
    if method.thresholds(saved["memory"]) is None:
        return plain
    weights = None if problem.weights is None else scale_weights(problem.weights)
    return _ask_method(method, saved["memory"], given, sets, weights) or plain


def _ask_method(
    method: Method, state: State, probs: Tensor, sets: Tensor, weights: Tensor | None
) -> Opinion | None:
    verdict = method.judge(probs, sets, state, weights)
    if verdict is None:
        return None
    doubted = method.overruled(sets, state)
    return Opinion(
        verdict.score.numpy(),
        verdict.confident.numpy(),
        None if doubted is None else doubted.numpy(),
    )
