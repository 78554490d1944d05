"""A classifier that learns from votes, in every form, and by way of scikit-learn."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import concont
from concont import PartialLabelClassifier

NAMES = ["ant", "bee", "cat"]
TRUTH = np.arange(60) % 3
STREAM = np.random.RandomState(0)
ROWS = STREAM.randn(60, 4) + 6 * np.eye(3, 4)[TRUTH]
VOTES = 2 * np.eye(3, dtype=int)[TRUTH] + np.eye(3, dtype=int)[STREAM.randint(3, size=60)]
VOTES[30] = [0, 1, 2]  # whose truth nobody named
UNVOTED = [3, 7, 50]
VOTES[UNVOTED] = 0


class Frame:
    """What scikit-learn and the classifier use of a DataFrame."""

    def __init__(self, values, columns):
        self.values, self.columns = values, columns
        self.shape = values.shape
        self.iloc = self

    def __array__(self, dtype=None, copy=None):
        return self.values

    def __len__(self):
        return len(self.values)

    def __gt__(self, least):
        return Frame(self.values > least, self.columns)

    def __getitem__(self, rows):
        return Frame(self.values[rows], self.columns)

    def take(self, rows, axis=0):
        return Frame(self.values.take(rows, axis), self.columns)


FORMS = {
    "an array": VOTES,
    "floats": VOTES * 1.0,
    "a sparse array": sparse.csr_array(VOTES),
    "a sparse matrix of columns": sparse.csc_matrix(VOTES),
    "a frame": Frame(VOTES, NAMES),
}


def make(epochs=6, settings=None, **more):
    small = {"model.width": 32, "train.batch_size": 16, **(settings or {})}
    fixed = {"random_state": 0, "device": "cpu"}
    return PartialLabelClassifier(epochs=epochs, settings=small, **fixed, **more)


def make_sets(votes):
    return np.where(votes.any(axis=1, keepdims=True), votes > 0, True)


@pytest.fixture(scope="module")
def expected():
    return make().fit(ROWS, make_sets(VOTES), candidate_weights=VOTES)


@pytest.mark.parametrize("form", FORMS)
def test_votes_alone_in_one_line(form, expected):
    """A row without votes is unlabelled."""
    votes = FORMS[form]
    model = make().fit(ROWS, votes > 0, candidate_weights=votes)
    assert np.array_equal(model.predict_proba(ROWS), expected.predict_proba(ROWS))
    names = NAMES if form == "a frame" else [0, 1, 2]
    assert model.classes_.tolist() == names
    assert model.labels_.tolist() == [names[each] for each in expected.labels_]


def test_votes_are_learned_from(expected):
    unweighed = make().fit(ROWS, make_sets(VOTES))
    assert not np.array_equal(unweighed.predict_proba(ROWS), expected.predict_proba(ROWS))


@pytest.mark.parametrize("columns", [["cat", "ant", "bee"], NAMES])
def test_columns_of_votes_are_found_by_the_names_of_sets(columns, expected):
    sets = [{NAMES[k] for k in row.nonzero()[0]} or None for row in VOTES]
    votes = Frame(VOTES[:, [NAMES.index(name) for name in columns]], columns)
    model = make().fit(ROWS, sets, candidate_weights=votes)
    assert np.array_equal(model.predict_proba(ROWS), expected.predict_proba(ROWS))
    numbers = Frame(VOTES > 0, [2, 5, 9])
    model = make().fit(ROWS, numbers, candidate_weights=Frame(VOTES[:, ::-1], [9, 5, 2]))
    assert model.labels_.tolist() == [[2, 5, 9][each] for each in expected.labels_]


@pytest.mark.parametrize("epochs", [1, 20])
def test_labels_are_those_that_resolve_names(tmp_path, epochs):
    """Of a network that has learned nothing yet, and of one that helps."""
    sets = make_sets(VOTES)
    np.savez(tmp_path / "votes.npz", x_train=ROWS, candidates=sets, candidate_weights=VOTES)
    model = make(epochs, out=tmp_path / "arrays").fit(ROWS, sets, candidate_weights=VOTES)
    settings = concont.load(tmp_path / "arrays").settings
    of_file = replace(settings.data, source=str(tmp_path / "votes.npz"))
    run = concont.train(replace(settings, data=of_file), out=tmp_path / "file")
    found = concont.resolve(run)
    assert model.labels_.tolist() == found.label.tolist()
    assert found.votes.network_helps == (epochs == 20)
    if epochs == 1:
        voted = VOTES.any(axis=1)
        assert (VOTES[voted, model.labels_[voted]] == VOTES[voted].max(axis=1)).all()
    else:
        assert model.labels_[30] == TRUTH[30]  # against the votes


def test_the_rows_that_are_held_out_take_their_votes_along():
    model = make(validation=0.2).fit(ROWS, make_sets(VOTES), candidate_weights=VOTES)
    assert model.validation_["share_in_sets"] > 0.5
    assert len(model.labels_) == 60
    other = VOTES.copy()
    other[0] *= 2  # the same shares: a row is told by them
    again = make(validation=0.2).fit(ROWS, make_sets(other), candidate_weights=other)
    assert np.array_equal(model.predict_proba(ROWS), again.predict_proba(ROWS))


def test_two_classes_that_both_have_votes_are_told_apart():
    """Every set is full, and yet most rows say something."""
    votes = np.where(np.eye(2, dtype=bool)[TRUTH % 2], 3, 1)
    model = make(15).fit(ROWS, votes > 0, candidate_weights=votes)
    assert model.score(ROWS, TRUTH % 2) > 0.9
    with pytest.raises(ValueError, match="nothing to learn from"):
        make().fit(ROWS, votes > 0, candidate_weights=np.ones_like(votes))


REFUSED = {
    "candidate_weights holds 'dog', which is none of the classes": Frame(
        VOTES, ["dog", *NAMES[1:]]
    ),
    "candidate_weights has 2 columns of 'ant'": Frame(VOTES[:, [0, 0, 1]], ["ant", "ant", "bee"]),
    "candidate_weights has 0 columns of 'cat'": Frame(VOTES[:, :2], NAMES[:2]),
    r"shape \(59, 3\); it must be numbers of shape \(60, 3\)": VOTES[:59],
    r"shape \(60,\)": VOTES[:, 0],
    "row 0, class 0 is -2, and is negative": -VOTES,
    "row 0, class 0 is nan, and is no finite number": np.where(VOTES > 0, np.nan, 0.0),
    "lies outside of the row's candidates": VOTES[:, ::-1],
    "candidate_weights is masked": np.ma.masked_equal(VOTES, 2),
}


@pytest.mark.parametrize("message", REFUSED)
def test_votes_that_do_not_fit_the_sets_are_refused(message):
    sets = Frame(make_sets(VOTES), NAMES)
    with pytest.raises(ValueError, match=message):
        make().fit(ROWS, sets, candidate_weights=REFUSED[message])


def test_a_row_without_a_candidate_is_unlabelled_only_where_nobody_voted():
    sets = VOTES > 0
    with pytest.raises(ValueError, match="row 3 of y has no candidate"):
        make().fit(ROWS, sets)
    sets[0] = False
    with pytest.raises(ValueError, match="row 0 of y has no candidate"):
        make().fit(ROWS, sets, candidate_weights=VOTES)


OPTIONS = {"cv": 3, "error_score": "raise"}


@pytest.mark.parametrize("routed", [False, True])
@pytest.mark.parametrize("form", ["an array", "a sparse array", "a frame"])
def test_votes_are_cut_with_the_rows_of_a_fold(form, routed, monkeypatch):
    seen, fit = [], PartialLabelClassifier.fit

    def watch(self, X, y, candidate_weights=None):
        dense = getattr(candidate_weights, "toarray", lambda: np.asarray(candidate_weights))()
        rows = [int(np.abs(ROWS - each).sum(axis=1).argmin()) for each in X]
        seen.append((rows, dense))
        return fit(self, X, y, candidate_weights)

    monkeypatch.setattr(PartialLabelClassifier, "fit", watch)
    params = {"candidate_weights": FORMS[form]}
    sets = make_sets(VOTES) if form != "a frame" else Frame(make_sets(VOTES), NAMES)
    with config_context(enable_metadata_routing=routed):
        model = make().set_fit_request(candidate_weights=True) if routed else make()
        scores = cross_val_score(model, ROWS, sets, params=params, **OPTIONS)
    assert scores.min() > 0.5
    assert len(seen) == 3
    assert all(np.array_equal(VOTES[rows], votes) for rows, votes in seen)


def test_they_are_routed_through_a_pipeline_and_a_search():
    with config_context(enable_metadata_routing=True):
        model = make().set_fit_request(candidate_weights=True)
        grid = {"partiallabelclassifier__epochs": [1, 12]}
        search = GridSearchCV(make_pipeline(StandardScaler(), model), grid, **OPTIONS)
        search.fit(ROWS, make_sets(VOTES), candidate_weights=VOTES)
    assert search.best_params_ == {"partiallabelclassifier__epochs": 12}
