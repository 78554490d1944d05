import pickle

import numpy as np
import pytest
import torch
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from concont.classic.estimator import CandidateClassifier, check_setting


class NearestMean(CandidateClassifier):
    """The least there can be: each class's mean over the rows that may be of it."""

    def _fit(self, x, sets):
        self.seen = x, sets
        share = sets / sets.sum(dim=0)
        self._means = (share.to(x).T @ x).cpu().numpy()

    def _scores(self, x):
        return -torch.cdist(x, self._tensor(self._means).to(x))


class Quiet(NearestMean):
    """That, without a note of what it was given, which scikit-learn would not have."""

    def _fit(self, x, sets):
        super()._fit(x, sets)
        del self.seen


X = np.array([[0.0, 0.0], [0.0, 1.0], [5.0, 5.0], [5.0, 6.0], [9.0, 0.0], [3.0, 3.0]])
SETS = np.array([[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 1, 1], [0, 0, 1], [1, 1, 1]])


@parametrize_with_checks([Quiet(device="cpu")])
def test_it_is_a_scikit_learn_classifier(estimator, check):
    check(estimator)


@pytest.mark.parametrize("kind", [bool, int, float, np.uint8, list])
def test_a_matrix_is_candidate_sets(kind):
    given = SETS.tolist() if kind is list else SETS.astype(kind)
    model = NearestMean(device="cpu").fit(X, given)
    x, sets = model.seen
    assert sets.dtype == torch.bool
    assert np.array_equal(sets, SETS)
    assert np.array_equal(x, X)
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.predict([[0, 0], [5, 5], [8, 0]]).tolist() == [0, 1, 2]
    assert model.decision_function([[0, 0]]).shape == (1, 3)
    assert model.score(X[:3], [0, 0, 1]) == 1.0


@pytest.mark.parametrize("labels", [["b", "b", "a", "a", "c", "a"], [7, 7, -1, -1, 9, -1]])
def test_labels_are_sets_of_one(labels):
    model = NearestMean(device="cpu").fit(X, labels)
    assert model.classes_.tolist() == sorted(set(labels))
    assert model.seen[1].sum(dim=1).tolist() == [1] * 6
    assert model.predict(X[:5]).tolist() == labels[:5]


def test_a_column_of_labels_is_taken_as_labels_and_remarked_on():
    with pytest.warns(DataConversionWarning, match="column-vector"):
        model = NearestMean(device="cpu").fit(X, np.array([[0], [0], [1], [1], [2], [1]]))
    assert model.classes_.tolist() == [0, 1, 2]


def test_sets_of_names():
    names = ["ant", "bee", "cat"]
    given = [
        None if all(row) else {n for n, k in zip(names, row, strict=True) if k} for row in SETS
    ]
    model = NearestMean(device="cpu").fit(X, given)
    assert np.array_equal(model.seen[1], SETS)
    assert model.predict([[0, 0], [5, 5]]).tolist() == ["ant", "bee"]


def test_two_classes_have_one_score_for_the_second():
    model = NearestMean(device="cpu").fit(X, SETS[:, :2] | (SETS[:, 2:] > 0))
    assert np.array_equal(model.decision_function(X) > 0, model.predict(X) == 1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_floats_are_kept(dtype):
    assert NearestMean(device="cpu").fit(X.astype(dtype), SETS).seen[0].numpy().dtype == dtype
    assert NearestMean(device="cpu").fit(X.astype(int), SETS).seen[0].dtype == torch.float64


def test_a_read_only_row_order_does_not_matter():
    odd = np.asfortranarray(X)
    odd.setflags(write=False)
    assert np.array_equal(NearestMean(device="cpu").fit(odd, SETS).seen[0], X)


def test_it_can_be_saved():
    model = NearestMean(device="cpu").fit(X, SETS)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


def replaced(row, column, value):
    changed = SETS.astype(float)
    changed[row, column] = value
    return changed


REFUSED = {
    "an empty set": (replaced(4, 2, 0), "row 4 of y has no candidate"),
    "a share": (replaced(4, 2, 0.5), "must hold 0 and 1 alone"),
    "not a number": (replaced(4, 2, np.nan), "NaN"),
    "words": (SETS.astype(str), "must hold 0 and 1 alone"),
    "one class": ([1] * 6, "one class alone"),
    "nothing labelled": (np.ones((6, 3)), "every row of y is unlabelled"),
    "too few rows": (SETS[:5], "inconsistent numbers of samples"),
    "no whole labels": (np.linspace(0, 1, 6), "Unknown label type"),
    "none": (None, "requires y to be passed"),
    "numbers and words": ([["a"], [1], [0], [2], [0], [1]], "by numbers and by words"),
    "three axes": (np.ones((6, 3, 2)), "it must have one, or two"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_candidate_set_is_refused(case):
    y, message = REFUSED[case]
    with pytest.raises(ValueError, match=message):
        NearestMean(device="cpu").fit(X, y)


def test_rows_are_checked_too():
    with pytest.raises(ValueError, match="NaN"):
        NearestMean(device="cpu").fit(np.where(X == 9, np.nan, X), SETS)
    with pytest.raises(NotFittedError):
        NearestMean(device="cpu").predict(X)
    with pytest.raises(ValueError, match="features"):
        NearestMean(device="cpu").fit(X, SETS).predict(X[:, :1])


def test_an_unusable_device_is_refused(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert NearestMean(device="auto").fit(X, SETS).seen[0].device.type == "cpu"
    with pytest.raises(ValueError, match="no CUDA device"):
        NearestMean(device="cuda").fit(X, SETS)
    with pytest.raises(ValueError, match="'auto', 'cpu' or 'cuda', not 'gpu'"):
        NearestMean(device="gpu").fit(X, SETS)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_floats_are_kept_on_a_gpu(dtype):
    model = NearestMean(device="cuda").fit(X.astype(dtype), SETS)
    assert model.seen[0].device.type == model.seen[1].device.type == "cuda"
    assert model.seen[0].cpu().numpy().dtype == model._means.dtype == dtype
    assert model.predict(X[:3]).tolist() == [0, 0, 1]
    model.device = "cpu"
    assert model.predict(X[:3]).tolist() == [0, 0, 1]


@pytest.mark.parametrize("value", [1, 2, np.int64(5), 10**9])
def test_whole_numbers_are_let_through(value):
    check_setting("k", value, 1, whole=True)


@pytest.mark.parametrize("value", [0, 1.0, 2.5, True, "3", None])
def test_other_settings_are_refused(value):
    with pytest.raises(ValueError, match="k must be a whole number from 1 on, not"):
        check_setting("k", value, 1, whole=True)


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan"), "x", False])
def test_numbers_outside_their_limits_are_refused(value):
    check_setting("r", np.float32(0.5), 0, 1)
    with pytest.raises(ValueError, match="r must be a number from 0 to 1, not"):
        check_setting("r", value, 0, 1)


@pytest.mark.parametrize("value", [float("inf"), np.float32("inf"), float("nan")])
def test_numbers_that_are_not_finite_are_refused(value):
    with pytest.raises(ValueError, match="mu must be a number from 0 on, not"):
        check_setting("mu", value, 0)
