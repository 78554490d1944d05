"""What SSPL and PARM share: the manners of a scikit-learn classifier, with candidate sets."""

import math
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data
from torch import Tensor

from concont.classic.scores import SetScoreMixin
from concont.data.targets import Targets, read_targets, refuse_masks
from concont.device import choose_device
from concont.errors import UsageError

FLOATS = (np.float64, np.float32)  # kept as given; anything else becomes the first


class CandidateClassifier(SetScoreMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier of rows of features that learns from candidate sets.

    Parameters
    ----------
    device : {"auto", "cpu", "cuda"}, default="auto"
        Where to compute; `auto` is a GPU where there is one.

    Attributes
    ----------
    classes_ : ndarray (C,)
        The classes by name, sorted; 0 to C - 1 where `fit` was given a matrix without names.
    labels_ : ndarray (N,)
        The class of each training row: its candidate set, resolved.
    n_features_in_ : int
        D, the features of a row.

    Notes
    -----
    A subclass gives `_fit` and `_scores`. What it keeps of the training rows it keeps as NumPy
    arrays, and takes them to the device with `_tensor` when it needs them: a fitted classifier
    can then be saved on a machine with a GPU and loaded on one without.
    """

    classes_: NDArray[Any]
    n_features_in_: int
    labels_: NDArray[Any]  # (N,) of the training rows, resolved

    def __init__(self, device: str = "auto") -> None:
        self.device = device

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn from rows and the candidate sets of each.

        Parameters
        ----------
        X : array (N, D), float
            Rows of features.
        y : list of sets, matrix (N, C) or labels (N,)
            Candidate sets: sets of class names, `None` where a row is unlabelled; texts such as
            `cat|dog`; a matrix of 0 and 1, dense, sparse or a DataFrame, in which a row that is all
            true is unlabelled. Or plain labels, each a set of one, where -1 is a class like any
            other and not an unlabelled row.

        Returns
        -------
        self
            The fitted classifier.
        """
        refuse_masks(X)
        given = self._read_targets(y)
        x = validate_data(self, X, dtype=FLOATS)
        check_consistent_length(x, given.sets)
        self.classes_, sets = given.classes, given.sets
        self._fit(self._tensor(x), self._tensor(sets))
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def _read_targets(self, y: Any) -> Targets:
        if y is None:
            name = type(self).__name__
            raise ValueError(f"{name} requires y to be passed, but the target y is None")
        given = read_targets(y)
        refuse_useless(given)
        return given

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Give the class of each row.

        Parameters
        ----------
        X : array (N, D), float
            Rows of features.

        Returns
        -------
        ndarray (N,)
            Of `classes_`.
        """
        best = self._checked_scores(X).argmax(axis=1)
        labels: NDArray[Any] = self.classes_[best]
        return labels

    def decision_function(self, X: ArrayLike) -> NDArray[Any]:
        """Give how much speaks for each class.

        Parameters
        ----------
        X : array (N, D), float
            Rows of features.

        Returns
        -------
        ndarray (N, C)
            The highest wins. With two classes (N,): what speaks for the second.
        """
        scores = self._checked_scores(X)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All that `fit` has learned, by name: what a file must hold."""
        learned = (name for name in vars(self) if name.startswith("_") or name.endswith("_"))
        found = {name: np.asarray(getattr(self, name)) for name in learned}
        return {name: array for name, array in found.items() if array.dtype.kind in "biuf"}

    def set_arrays(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take back what `arrays` gave."""
        for name, array in arrays.items():
            setattr(self, name, array if array.ndim else array.item())

    def _fit(self, x: Tensor, sets: Tensor) -> None:
        """Learn from x (N, D) float and sets (N, C) bool on the device."""
        raise NotImplementedError

    def _scores(self, x: Tensor) -> Tensor:
        """What speaks for each class (N, C); the highest wins, the first among equals."""
        raise NotImplementedError

    def _checked_scores(self, X: ArrayLike) -> NDArray[Any]:
        check_is_fitted(self)
        refuse_masks(X)
        x = validate_data(self, X, reset=False, dtype=FLOATS)
        scores: NDArray[Any] = self._scores(self._tensor(x)).cpu().numpy()
        return scores

    def _tensor(self, array: NDArray[Any]) -> Tensor:
        """The array on the device."""
        try:
            device = choose_device(self.device)
        except UsageError as error:
            raise ValueError(str(error)) from None
        return torch.from_numpy(np.require(array, requirements=("C", "W"))).to(device)


def refuse_useless(given: Targets, has_votes: bool = False) -> None:
    """Targets that tell nothing apart; votes may, even where every class is a candidate."""
    if given.unlabelled.all() and not has_votes:
        raise ValueError("every row of y is unlabelled: some must leave out a class")
    if len(given.classes) < 2:
        raise ValueError("y names one class alone: there is nothing to tell apart")


def check_setting(
    name: str, value: Any, lowest: float, highest: float = math.inf, *, whole: bool = False
) -> None:
    """Refuse a setting that is no finite number (no whole one) from lowest to highest."""
    right_kind = isinstance(value, Integral if whole else Real) and not isinstance(value, bool)
    if not right_kind or not lowest <= value <= highest or value == math.inf:
        number = "a whole number" if whole else "a number"
        limits = f"from {lowest} on" if highest == math.inf else f"from {lowest} to {highest}"
        raise ValueError(f"{name} must be {number} {limits}, not {value!r}")
