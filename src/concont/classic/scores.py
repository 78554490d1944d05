"""How good a classifier is, by true labels or by the candidate sets that are all there is."""

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_consistent_length

from concont.data.targets import Targets, encode_targets


class SetScoreMixin(ClassifierMixin):  # type: ignore[misc]
    """The `score` of a classifier that learns from candidate sets."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Give the share of rows that are labelled right, or at least not wrong.

        Parameters
        ----------
        X : array
            As in `fit`.
        y : array
            True labels: the score is the accuracy. Or candidate sets, in any form that `fit` takes:
            the share of rows whose label is in their set, which is accuracy's upper bound as long
            as the sets hold the truth. Unlabelled rows are left out.
        sample_weight : array (N,), optional
            What each row counts.

        Returns
        -------
        float
            From 0 to 1.

        See Also
        --------
        concont.set_score : The probability on the set, which tells more where sets are large.
        """
        label = np.asarray(self.predict(X))
        known = encode_targets(y, self.classes_)
        check_consistent_length(label, known.sets, sample_weight)
        places = {each: k for k, each in enumerate(known.classes.tolist())}
        column = np.array([places[each] for each in label.tolist()])
        right = known.sets[np.arange(len(label)), column]
        return _average(right.astype(np.float64), known, sample_weight)


def set_score(estimator: Any, X: Any, y: Any) -> float:
    """Mean probability that falls on the candidate set: a scorer for data without true labels.

    Parameters
    ----------
    estimator : classifier
        Fitted; also a pipeline that ends in one. Of a classifier without probabilities, such as
        `SSPLClassifier`, the whole probability is its label's.
    X : array
        Rows that it was not fitted on.
    y : array
        Their candidate sets, in any form that `PartialLabelClassifier.fit` takes; unlabelled rows
        are left out.

    Returns
    -------
    float
        From 0 to 1, and higher is better; a classifier that guesses has the mean size of the sets
        as a share of the classes.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import cross_val_score
    >>> import concont
    >>> X = np.random.RandomState(0).randn(60, 2) + 5 * np.repeat(np.eye(2), 30, axis=0)
    >>> sets = [{"a"}, {"a", "c"}] * 15 + [{"b"}, {"b", "c"}, None] * 10
    >>> cross_val_score(concont.PARMClassifier(), X, sets, scoring=concont.set_score).shape
    (5,)
    """
    known = encode_targets(y, estimator.classes_)
    if hasattr(estimator, "predict_proba"):
        probs = np.asarray(estimator.predict_proba(X), dtype=np.float64)
        check_consistent_length(probs, known.sets)
        return _average((probs * known.sets).sum(axis=1), known, None)
    return float(estimator.score(X, y))


def _average(values: Any, known: Targets, sample_weight: Any) -> float:
    said = ~known.unlabelled
    if not said.any():
        raise ValueError(
            "every row of y is unlabelled, so there is nothing to score against; where the "
            "unlabelled rows stand together, shuffle the folds: cv=KFold(5, shuffle=True)"
        )
    weights = None if sample_weight is None else np.asarray(sample_weight)[said]
    return float(np.average(values[said], weights=weights))
