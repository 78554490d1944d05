import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from concont import PARMClassifier, SSPLClassifier, as_sets, set_score
from concont.classic.scores import SetScoreMixin

NAMES = np.array(["ant", "bee", "cat"])
TRUTH = np.arange(60) % 3
X = np.random.RandomState(0).randn(60, 4)
X[np.arange(60), TRUTH] += 5
OTHER = np.random.RandomState(1).permutation(TRUTH)
MATRIX = np.eye(3, dtype=int)[TRUTH] | np.eye(3, dtype=int)[OTHER]
MATRIX[::10] = 1  # unlabelled
SETS = as_sets([set(NAMES[row.astype(bool)]) for row in MATRIX])
TEXTS = np.array(["|".join(sorted(each)) if each else "" for each in SETS])
FORMS = {
    "sets": SETS,
    "texts": TEXTS,
    "a matrix": MATRIX,
    "labels": NAMES[TRUTH],
}
CLASSIFIERS = {
    "sspl": SSPLClassifier(k=3, device="cpu"),
    "parm": PARMClassifier(device="cpu", random_state=0),
}


class Fixed(SetScoreMixin, BaseEstimator):
    """Gives the probabilities that it is asked about."""

    def __init__(self, classes):
        self.classes_ = np.array(classes)

    def predict_proba(self, X):
        return np.asarray(X)

    def predict(self, X):
        return self.classes_[np.argmax(X, axis=1)]


PROBS = np.array([[0.7, 0.2, 0.1], [0.1, 0.2, 0.7], [0.3, 0.4, 0.3], [0.2, 0.5, 0.3]])


def test_true_labels_give_the_accuracy():
    model = Fixed(NAMES)
    assert model.score(PROBS, ["ant", "cat", "ant", "bee"]) == 0.75
    assert model.score(PROBS, [0, 2, 0, 1]) == 0.75  # by place
    assert model.score(PROBS, ["ant", "cat", "ant", "fox"]) == 0.5  # which it cannot know
    assert model.score(PROBS, ["ant", "cat", "ant", "bee"], [1, 1, 2, 0]) == 0.5
    assert Fixed([3, 5, 9]).score(PROBS, [3, 9, 3, 5]) == 0.75


def test_sets_give_the_share_of_labels_inside_and_the_probability_on_them():
    model, sets = Fixed(NAMES), [{"ant"}, {"ant", "bee"}, None, {"bee", "fox"}]
    assert model.score(PROBS, sets) == pytest.approx(2 / 3)
    assert set_score(model, PROBS, sets) == pytest.approx((0.7 + 0.3 + 0.5) / 3)
    with pytest.raises(ValueError, match="every row of y is unlabelled"):
        set_score(model, PROBS, [None] * 4)
    with pytest.raises(ValueError, match="inconsistent numbers"):
        set_score(model, PROBS, sets[:3])


def test_without_probabilities_the_label_has_all_of_it():
    model = CLASSIFIERS["sspl"].fit(X, SETS)
    assert set_score(model, X, SETS) == model.score(X, SETS) > 0.9


@pytest.mark.parametrize("scoring", [None, set_score])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_cross_validation_takes_every_form(name, form, scoring):
    cv = 3 if form != "texts" else KFold(3)  # else scikit-learn would stratify by their words
    scores = cross_val_score(
        CLASSIFIERS[name], X, FORMS[form], scoring=scoring, cv=cv, error_score="raise"
    )
    assert scores.shape == (3,)
    assert min(scores) > 0.8


@pytest.mark.parametrize("form", ["sets", "a matrix"])
def test_a_search_over_a_pipeline(form):
    pipeline = make_pipeline(StandardScaler(), CLASSIFIERS["sspl"])
    search = GridSearchCV(pipeline, {"ssplclassifier__k": [2, 5]}, cv=3)
    found = search.fit(X, FORMS[form])
    assert np.isfinite(found.cv_results_["mean_test_score"]).all()
    assert found.score(X, FORMS["labels"] if form == "sets" else TRUTH) > 0.9
