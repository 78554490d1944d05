import logging

import numpy as np
import pytest

from concont.data.problem import draw_sets, make_problem
from concont.data.sources import digits, from_arrays
from concont.errors import DataError, UsageError
from concont.rng import frozen_stream
from concont.runs.settings import Data


def test_sets_hold_the_true_label_and_wrong_ones_at_the_asked_rate():
    labels = np.arange(20_000) % 10
    sets = draw_sets(labels, 10, 0.3, frozen_stream(1, "t"), at_least_two=False)
    assert sets[np.arange(len(labels)), labels].all()
    wrong = (sets.sum() - len(labels)) / (9 * len(labels))
    assert wrong == pytest.approx(0.3, abs=0.005)
    shares = [sets[labels != j, j].mean() for j in range(10)]
    assert shares == pytest.approx([0.3] * 10, abs=0.015)


def test_without_ambiguity_a_set_is_the_label():
    labels = np.array([0, 2, -1])
    sets = draw_sets(labels, 3, 0.0, frozen_stream(1, "t"), at_least_two=False)
    assert sets.tolist() == [[True, False, False], [False, False, True], [True, True, True]]


def test_at_least_two_adds_one_wrong_label_evenly():
    labels = np.zeros(6_000, dtype=np.int64)
    sets = draw_sets(labels, 4, 0.0, frozen_stream(1, "t"), at_least_two=True)
    assert (sets.sum(axis=1) == 2).all()
    assert sets[:, 1:].mean(axis=0) == pytest.approx([1 / 3] * 3, abs=0.03)


def test_the_digits_problem():
    problem = make_problem(
        digits(), Data(source="digits", labeled=0.1, ambiguity=0.3, unlabeled=True)
    )
    assert len(problem.rows) == 1437
    assert problem.n_partial == 144
    assert problem.evaluated_on == "test"
    assert problem.candidates[np.arange(1437), problem.truth].all()
    sizes = problem.candidates[~problem.candidates.all(axis=1)].sum(axis=1)
    assert sizes.mean() == pytest.approx(1 + 9 * 0.3, abs=0.3)


def test_the_same_seed_gives_the_same_sets_whatever_else_is_asked():
    def sets(**changes):
        base = {"source": "digits", "labeled": 0.1, "ambiguity": 0.3, "unlabeled": False, "seed": 3}
        return make_problem(digits(), Data(**{**base, **changes}))

    one = sets()
    assert np.array_equal(one.candidates, sets().candidates)
    assert not np.array_equal(one.rows, sets(seed=4).rows)
    wide = sets(unlabeled=True)
    assert np.array_equal(wide.candidates[np.isin(wide.rows, one.rows)], one.candidates)
    more = sets(labeled=0.2)
    assert np.isin(one.rows, more.rows).all()  # a larger share keeps the smaller one's rows
    shared = np.isin(more.rows, one.rows)
    assert np.array_equal(more.candidates[shared], one.candidates)


def test_partial_only_leaves_the_unlabelled_out():
    problem = make_problem(digits(), Data(labeled=0.1, ambiguity=0.3, unlabeled=False))
    assert len(problem.rows) == problem.n_partial == 144


def test_images_are_copied_only_where_rows_are_left_out():
    data = digits()
    whole = make_problem(data, Data(labeled=0.1, ambiguity=0.3, unlabeled=True))
    assert whole.images is data.x_train
    part = make_problem(data, Data(labeled=0.1, ambiguity=0.3, unlabeled=False))
    assert np.array_equal(part.images, data.x_train[part.rows])


def test_a_count_and_stratified_sampling():
    problem = make_problem(
        digits(), Data(labeled=50, ambiguity=0.0, unlabeled=False, stratified=True)
    )
    assert np.bincount(problem.truth).tolist() == [5] * 10


def test_a_hold_out_leaves_training_and_test():
    data = digits()
    problem = make_problem(data, Data(labeled=0.1, ambiguity=0.3, unlabeled=True, holdout=0.2))
    assert problem.evaluated_on == "holdout"
    assert len(problem.test_labels) == 287
    assert len(problem.rows) == 1150
    held = np.setdiff1d(np.arange(1437), problem.rows)
    assert np.array_equal(problem.test_images, data.x_train[held])


def keep_sets_alone(arrays, unlabelled=10):
    """The same images with sets and no true label of any."""
    sets = np.eye(3, dtype=bool)[arrays["y_train"]]
    sets[::2, 2] = True
    sets[len(sets) - unlabelled :] = True
    return {"x_train": arrays["x_train"], "candidates": sets}


def test_where_no_label_is_known_sets_are_held_out(toy_arrays):
    data = from_arrays(keep_sets_alone(toy_arrays))
    problem = make_problem(data, Data(unlabeled=True, holdout=0.2))
    assert problem.evaluated_on == "sets"
    assert problem.n_held_out == problem.n_measured == 6  # a fifth of the 30 that have a set
    assert problem.test_labels is None
    held = np.setdiff1d(np.arange(40), problem.rows)
    assert held.max() < 30
    assert np.array_equal(problem.test_images, data.x_train[held])
    assert np.array_equal(problem.test_candidates, data.candidates[held])
    assert problem.n_partial == 24
    with pytest.raises(UsageError, match="asks for 0 rows; 30 have a candidate set"):
        make_problem(data, Data(holdout=0.01))


def test_a_few_labels_are_enough_to_measure_by_labels(toy_arrays):
    labels = np.where(np.arange(40) < 8, toy_arrays["y_train"], -1)
    data = from_arrays({**keep_sets_alone(toy_arrays), "y_train": labels})
    problem = make_problem(data, Data(holdout=0.1))
    assert problem.evaluated_on == "holdout"
    assert problem.test_labels.min() >= 0


def test_labels_as_given_are_sets_of_one(toy_arrays):
    toy_arrays["y_train"] = np.where(np.arange(40) < 30, toy_arrays["y_train"], -1)
    problem = make_problem(from_arrays(toy_arrays), Data(unlabeled=True))
    assert problem.n_partial == 30
    assert (problem.candidates[:30].sum(axis=1) == 1).all()
    assert problem.candidates[30:].all()


def test_sets_as_given_are_kept_and_can_be_hidden(toy_arrays):
    sets = np.ones((40, 4), dtype=bool)
    sets[:20, 3] = False
    data = from_arrays({**toy_arrays, "candidates": sets})
    assert np.array_equal(make_problem(data, Data(unlabeled=True)).candidates, sets)
    few = make_problem(data, Data(unlabeled=True, labeled=5))
    assert few.n_partial == 5
    with pytest.raises(UsageError, match="leave --ambiguity out"):
        make_problem(data, Data(ambiguity=0.3))


def test_no_labels_or_too_few_are_refused(toy_arrays):
    blank = {**toy_arrays, "y_train": np.full(40, -1)}
    with pytest.raises(DataError, match="nothing to learn from"):
        make_problem(from_arrays(blank), Data())
    with pytest.raises(UsageError, match="asks for 50 rows with a candidate set; 40 can have one"):
        make_problem(from_arrays(toy_arrays), Data(labeled=50))
    with pytest.raises(UsageError, match=r"data\.holdout asks for 0 rows"):
        make_problem(from_arrays(toy_arrays), Data(holdout=0.001))


def test_without_a_test_set_nothing_is_measured(toy_arrays):
    arrays = {k: v for k, v in toy_arrays.items() if "test" not in k}
    assert make_problem(from_arrays(arrays), Data()).evaluated_on is None


def test_a_true_label_outside_its_set_is_a_warning(toy_arrays, caplog):
    sets = np.ones((40, 2), dtype=bool)
    sets[[3, 5], toy_arrays["y_train"][[3, 5]]] = False
    with caplog.at_level(logging.WARNING, "concont"):
        make_problem(from_arrays({**toy_arrays, "candidates": sets}), Data(unlabeled=True))
    assert "2 of 40 rows have a true label outside" in caplog.text
