"""Which rows keep a candidate set, and which labels are in it."""

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concont.data.candidate_file import CandidateSets, read_candidate_sets
from concont.data.mapped_arrays import RowsOf, choose_rows
from concont.data.sources import UNKNOWN, Dataset, Inputs, Labels
from concont.errors import DataError, UsageError
from concont.rng import frozen_stream
from concont.runs.settings import Data

log = logging.getLogger("concont")


@dataclass(frozen=True)
class Problem:
    """What a run learns from and is measured on; rows are those of the data set."""

    rows: NDArray[np.int64]  # (N,) which training images these are
    images: Inputs | RowsOf  # (N, H, W, channels), or features (N, D)
    candidates: NDArray[np.bool_]  # (N, C); all True = unlabelled
    truth: Labels  # (N,) for logging and declared bounds alone
    test_images: Inputs | RowsOf | None
    test_labels: Labels | None
    # "test"; "holdout"; "sets", held-out images of which sets alone are known; None: nothing
    evaluated_on: str | None
    classes: tuple[str, ...]
    digest: str  # of the data
    sets: CandidateSets  # of all rows of the data set, those that are not used among them
    # (M, C) drawn as the training sets were; where sets are measured on, their own
    test_candidates: NDArray[np.bool_] | None = None
    fit: str | None = None  # how image files were made square; None: the data came as arrays
    names: tuple[str, ...] | None = None  # (N,) what the images are called, if anything
    # (N, C) votes for each candidate, 0 outside a set, all 1 where unlabelled; None: not counted
    weights: NDArray[np.float32] | None = None
    voted: NDArray[np.bool_] | None = None  # (N,) whose weights are votes; None: not counted

    @property
    def partial(self) -> NDArray[np.bool_]:
        """Which inputs (N,) something is known of: a set, or votes on every class."""
        return find_informative(self.candidates, self.weights)

    @property
    def sets_hash(self) -> str:
        """What identifies the candidate sets, as `concont data candidates` prints it."""
        return self.sets.hash

    @property
    def n_partial(self) -> int:
        """Inputs that something is known of."""
        return int(self.partial.sum())

    @property
    def n_held_out(self) -> int:
        """Images of the training set that were set aside to measure on."""
        return self.n_measured if self.evaluated_on in ("holdout", "sets") else 0

    @property
    def n_measured(self) -> int:
        """Images that the run is measured on."""
        return 0 if self.test_images is None else len(self.test_images)


def make_problem(data: Dataset, settings: Data) -> Problem:
    """Hold rows out, choose the rows that keep a set, make the sets, drop what is not used."""
    rows, held = _split_hold_out(data, settings)
    sets = make_candidate_sets(data, settings)
    candidates = sets.candidates
    if not settings.unlabeled:
        rows = rows[sets.labeled[rows]]
    _warn_of_labels_outside_sets(data.y_train[rows], candidates[rows])
    weights, voted = _keep_weights(data.weights, sets)
    measured, test_labels = _name_measured(data, held), data.y_test
    if len(held):
        test_labels = None if measured == "sets" else data.y_train[held]
    test_sets = _draw_test_sets(test_labels, len(data.classes), settings)
    if measured == "sets" and data.candidates is not None:
        test_sets = data.candidates[held]
    return Problem(
        rows=rows,
        images=choose_rows(data.x_train, rows),
        candidates=candidates[rows],
        truth=data.y_train[rows],
        test_images=choose_rows(data.x_train, held) if len(held) else data.x_test,
        test_labels=test_labels,
        evaluated_on=measured,
        classes=data.classes,
        digest=data.digest,
        sets=sets,
        test_candidates=test_sets,
        fit=data.fit,
        names=None if data.names is None else tuple(data.names[row] for row in rows),
        weights=None if weights is None else weights[rows],
        voted=None if voted is None else voted[rows],
    )


def find_voted(
    candidates: NDArray[np.bool_], weights: NDArray[np.floating[Any]]
) -> NDArray[np.bool_]:
    """Which rows (N,) have votes that tell one class from another."""
    return np.asarray(weights.any(axis=1) & find_informative(candidates, weights))


def find_informative(
    candidates: NDArray[np.bool_], weights: NDArray[np.floating[Any]] | None
) -> NDArray[np.bool_]:
    """Which rows (N,) say something: not every class is a candidate, or not all weigh the same."""
    says = ~candidates.all(axis=1)
    if weights is not None:
        says |= (weights != weights[:, :1]).any(axis=1)
    return np.asarray(says)


def _keep_weights(
    weights: NDArray[np.float32] | None, sets: CandidateSets
) -> tuple[NDArray[np.float32] | None, NDArray[np.bool_] | None]:
    """Those of the labels that a row's set holds, all 1 where none of them counts; where any does.

    Candidates that all weigh 1 since nobody counted are no votes that contradict each other.
    """
    if weights is None:
        return None, None
    kept = np.where(sets.candidates & sets.labeled[:, None], weights, 0)
    voted = np.asarray(kept.any(axis=1))
    kept[~voted] = sets.candidates[~voted]
    return np.asarray(kept, dtype=np.float32), voted


def _draw_test_sets(
    labels: Labels | None, n_classes: int, settings: Data
) -> NDArray[np.bool_] | None:
    """Sets for the images that a run is measured on; None where no q is given to draw them by."""
    if labels is None or settings.ambiguity is None:
        return None
    stream = frozen_stream(settings.seed, "test candidates")
    return draw_sets(labels, n_classes, settings.ambiguity, stream, settings.at_least_two)


def replace_truth(
    sets: NDArray[np.bool_], labels: Labels, noise: float, stream: np.random.RandomState
) -> NDArray[np.bool_]:
    """Sets (N, C) of which some miss the truth (N,): by that chance a wrong label takes its place.

    It is drawn from those that are not in the set, which so keeps its size; a set that holds every
    label stays as it is.
    """
    spoilt: NDArray[np.bool_] = (stream.random_sample(len(sets)) < noise) & ~sets.all(axis=1)
    rows = np.flatnonzero(spoilt & (labels != UNKNOWN))
    chance = np.where(sets[rows], np.inf, stream.random_sample(sets.shape)[rows])
    noisy = sets.copy()
    noisy[rows, labels[rows]] = False
    noisy[rows, chance.argmin(axis=1)] = True
    return noisy


def make_candidate_sets(data: Dataset, settings: Data) -> CandidateSets:
    """The candidate sets of all training rows: from a file, or drawn from the seed."""
    if settings.candidates is not None:
        sets = read_candidate_sets(Path(settings.candidates))
        if sets.data != data.digest or sets.candidates.shape[1] != len(data.classes):
            raise DataError(f"{settings.candidates}: these candidate sets belong to other data")
        if settings.noise:
            raise UsageError(
                f"the sets of {settings.candidates} are what they are; leave data.noise out"
            )
        return sets
    rows, _ = _split_hold_out(data, settings)
    drawn = _take_or_draw_sets(data, settings)
    keeps = _choose_labeled_rows(data, drawn, rows, settings)
    return CandidateSets(keeps, np.where(keeps[:, None], drawn, True), data.digest)


def draw_sets(
    labels: Labels, n_classes: int, q: float, stream: np.random.RandomState, at_least_two: bool
) -> NDArray[np.bool_]:
    """Candidate sets (N, C): the true label always, each wrong one with probability q.

    Inputs without a label get every class. `at_least_two` adds one wrong label to a lone one.
    """
    chance = stream.random_sample((len(labels), n_classes))
    sets: NDArray[np.bool_] = np.asarray(chance < q)
    known = labels != UNKNOWN
    sets[np.flatnonzero(known), labels[known]] = True
    if at_least_two:
        lone = known & (sets.sum(axis=1) == 1)
        nearest = np.where(sets, np.inf, chance).argmin(axis=1)  # a wrong label, uniformly
        sets[np.flatnonzero(lone), nearest[lone]] = True
    sets[~known] = True
    return sets


def _split_hold_out(data: Dataset, settings: Data) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    everything = np.arange(len(data.x_train))
    if settings.holdout == 0:
        return everything, everything[:0]
    of_labels = _knows_labels(data)
    known = everything[data.y_train != UNKNOWN] if of_labels else _find_sets(data)
    count = round(settings.holdout * len(everything if of_labels else known))
    if not 0 < count < len(known):
        what = "true label" if of_labels else "candidate set"
        raise UsageError(f"data.holdout asks for {count} rows; {len(known)} have a {what}")
    shuffled = frozen_stream(settings.seed, "holdout").permutation(known)
    held = np.sort(shuffled[:count])
    return np.setdiff1d(everything, held), held


def _knows_labels(data: Dataset) -> bool:
    """Whether any training image has a true label; where none has, sets are all that there is."""
    return bool((data.y_train != UNKNOWN).any())


def _find_sets(data: Dataset) -> NDArray[np.int64]:
    """The rows whose own set leaves out a class."""
    sets = data.candidates
    return np.flatnonzero([] if sets is None else ~sets.all(axis=1))


def _name_measured(data: Dataset, held: NDArray[np.int64]) -> str | None:
    if len(held):
        return "holdout" if _knows_labels(data) else "sets"
    return None if data.x_test is None else "test"


def _take_or_draw_sets(data: Dataset, settings: Data) -> NDArray[np.bool_]:
    """Every row's set, whether it will be kept or not."""
    if data.candidates is not None:
        for name, flag, none in (("ambiguity", "--ambiguity", "null"), ("noise", "data.noise", 0)):
            if getattr(settings, name):
                raise UsageError(
                    f"this data has candidate sets of its own; leave {flag} out, or where a recipe "
                    f"brings it: --set data.{name}={none}"
                )
        return data.candidates
    stream = frozen_stream(settings.seed, "candidates")
    q = settings.ambiguity or 0.0
    sets = draw_sets(data.y_train, len(data.classes), q, stream, settings.at_least_two)
    if settings.noise == 0:
        return sets
    stream = frozen_stream(settings.seed, "noise")
    return replace_truth(sets, data.y_train, settings.noise, stream)


def _choose_labeled_rows(
    data: Dataset, sets: NDArray[np.bool_], rows: NDArray[np.int64], settings: Data
) -> NDArray[np.bool_]:
    """Which of the data set's rows keep their set (N,) bool.

    A set that a wide flip filled with every class tells nothing, yet it was annotated: it counts.
    """
    annotated = np.zeros(len(sets), dtype=bool)
    given: NDArray[np.bool_] = np.asarray(data.y_train != UNKNOWN)
    if data.candidates is not None:
        given = find_informative(sets, data.weights)
    annotated[rows] = given[rows]
    pool = np.flatnonzero(annotated)
    if len(pool) == 0:
        raise DataError("no row has a label or a candidate set, so there is nothing to learn from")
    if settings.labeled is None:
        return annotated
    share = settings.labeled <= 1
    count = round(settings.labeled * len(rows)) if share else int(settings.labeled)
    if share and settings.labeled == 1:
        count = len(pool)
    if not 0 < count <= len(pool):
        raise UsageError(
            f"data.labeled asks for {count} rows with a candidate set; {len(pool)} can have one"
        )
    order = frozen_stream(settings.seed, "labeled").permutation(len(sets))
    order = order[annotated[order]]
    if settings.stratified:
        order = _take_classes_in_turn(order, data.y_train)
    keeps = np.zeros(len(sets), dtype=bool)
    keeps[order[:count]] = True
    return keeps


def _take_classes_in_turn(order: NDArray[np.int64], labels: Labels) -> NDArray[np.int64]:
    """The same rows so that every prefix has its classes as even as can be."""
    rank = np.empty(len(order), dtype=np.int64)
    for label in np.unique(labels[order]):
        own = np.flatnonzero(labels[order] == label)
        rank[own] = np.arange(len(own))
    return order[np.argsort(rank, kind="stable")]


def _warn_of_labels_outside_sets(truth: Labels, candidates: NDArray[np.bool_]) -> None:
    known = np.flatnonzero(truth != UNKNOWN)
    outside = int((~candidates[known, truth[known]]).sum())
    if outside:
        log.warning(
            "%d of %d rows have a true label outside their own candidate set", outside, len(known)
        )
