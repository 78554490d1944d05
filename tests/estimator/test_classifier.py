import pickle

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator
from torch import nn

import concont
from concont import PartialLabelClassifier, as_sets, set_score
from concont.runs.folder import RunFolder

# scikit-learn's checks that do not hold, each with its reason; all others must.
EXPECTED_FAILED: dict[str, str] = {}
# Those that tell most; the others, a second of small trainings each, are for `make test-long`.
QUICK = {
    *("check_estimator_cloneable", "check_do_not_raise_errors_in_init_or_set_param"),
    *("check_no_attributes_set_in_init", "check_parameters_default_constructible"),
    *("check_estimators_unfitted", "check_supervised_y_2d", "check_requires_y_none"),
    *("check_n_features_in", "check_classifiers_one_label", "check_dict_unchanged"),
    *("check_estimators_nan_inf", "check_estimator_sparse_tag", "check_estimators_pickle"),
    *("check_classifiers_regression_target", "check_fit2d_1sample", "check_fit1d"),
}


def make_checks():
    settings = {"model.width": 64, "train.batch_size": 32, "train.evaluate_every": 15}
    model = PartialLabelClassifier(epochs=15, settings=settings, device="cpu", random_state=0)
    for estimator, check in estimator_checks_generator(
        model, expected_failed_checks=EXPECTED_FAILED, mark="skip"
    ):
        name = getattr(check, "func", check).__name__
        yield pytest.param(
            *(estimator, check), id=name, marks=[] if name in QUICK else pytest.mark.long
        )


@pytest.mark.parametrize(("estimator", "check"), list(make_checks()))
def test_it_is_a_scikit_learn_classifier(estimator, check):
    check(estimator)


NAMES = np.array(["ant", "bee", "cat"])
TRUTH = np.arange(60) % 3
ROWS = np.random.RandomState(0).randn(60, 4) + 6 * np.eye(3, 4)[TRUTH]
SETS = [
    None if row % 4 == 3 else {NAMES[label], NAMES[(label + row % 2) % 3]}
    for row, label in enumerate(TRUTH)
]
FAST = {"random_state": 0, "device": "cpu"}


def images(truth=TRUTH, seed=0):
    """Grey 8 x 8 images, each class bright in another place."""
    made = np.random.RandomState(seed).randint(0, 60, (len(truth), 8, 8)).astype(np.uint8)
    for row, label in enumerate(truth):
        made[row, 2 * label : 2 * label + 3] += 150
    return made


def of_rows(settings=None, **more):
    small = {"model.width": 32, "train.batch_size": 16, **(settings or {})}
    return PartialLabelClassifier(epochs=12, settings=small, **FAST, **more)


def of_images(**more):
    small = {"model.width": 4, "model.hidden": 8, "model.embedding": 8, "train.batch_size": 16}
    return PartialLabelClassifier(settings=small, **{"epochs": 15, **FAST, **more})


def test_rows_of_features_and_sets_of_names():
    model = of_rows().fit(ROWS, SETS)
    assert model.classes_.tolist() == NAMES.tolist()
    assert model.n_features_in_ == 4
    assert model.predict(ROWS).dtype.kind == "U"
    assert np.mean(model.predict(ROWS) == NAMES[TRUTH]) > 0.95
    assert np.mean(model.labels_ == NAMES[TRUTH]) > 0.95
    assert model.score(ROWS, NAMES[TRUTH]) == np.mean(model.predict(ROWS) == NAMES[TRUTH])
    assert model.score(ROWS, TRUTH) == model.score(ROWS, NAMES[TRUTH])
    probs = model.predict_proba(ROWS)
    known = [row for row, each in enumerate(SETS) if each is not None]
    on_sets = [sum(probs[row, NAMES.tolist().index(name)] for name in SETS[row]) for row in known]
    assert set_score(model, ROWS, SETS) == pytest.approx(np.mean(on_sets))
    assert model.validation_ is None
    assert model.history_[-1]["epoch"] == 12


def test_nothing_of_an_earlier_fit_is_left():
    model = of_rows().fit(torch.tensor(ROWS, requires_grad=True), SETS)
    assert model.n_features_in_ == 4
    model.set_params(**of_images(epochs=1).get_params()).fit(images(), SETS)
    assert not hasattr(model, "n_features_in_")
    assert model.predict(images()).shape == (60,)


def test_the_same_seed_gives_the_same_classifier():
    first, second = (of_rows().fit(ROWS, SETS).predict_proba(ROWS) for _ in range(2))
    assert np.array_equal(first, second)
    other = clone(of_rows()).set_params(random_state=1).fit(ROWS, SETS)
    assert not np.array_equal(first, other.predict_proba(ROWS))
    stream = np.random.RandomState(3)
    drawn = of_rows().set_params(random_state=stream).fit(ROWS, SETS)
    assert stream.randint(2**31 - 1) != np.random.RandomState(3).randint(2**31 - 1)
    assert drawn.predict(ROWS).shape == (60,)


def test_images_and_the_files_of_images(tmp_path, save, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    pixels = images()
    model = of_images().fit(pixels, SETS)
    assert model.score(images(seed=1), NAMES[TRUTH]) > 0.9
    assert model.score(torch.from_numpy(pixels), SETS) > 0.9
    assert not hasattr(model, "n_features_in_")
    with pytest.raises(ValueError, match=r"the images are \(9, 9, 1\); the run learned from"):
        model.predict(np.zeros((2, 9, 9), np.uint8))
    coloured = np.repeat(pixels[..., None], 3, axis=3)
    paths = [save(f"{row}.png", each) for row, each in enumerate(coloured)]
    of_files = of_images().fit(paths, SETS)
    of_arrays = of_images().fit(coloured, SETS)
    expected = of_arrays.predict_proba(coloured)
    assert np.array_equal(of_files.predict_proba(paths), expected)
    assert np.array_equal(of_files.predict_proba(np.array(paths, dtype=object)), expected)
    assert np.array_equal(of_files.predict_proba(list(map(str, paths))), expected)
    assert of_images(image_size=np.int64(12)).fit(paths, SETS)._predictor.shape == (12, 12, 3)
    with pytest.raises(ValueError, match="nosuch"):
        of_files.predict([tmp_path / "nosuch.png"])
    with pytest.raises(ValueError, match="labels no image files"):
        of_rows(settings={"train.evaluate_every": 5}).fit(ROWS, SETS).predict(paths)


def test_a_held_out_part_of_the_sets_measures_a_run(tmp_path):
    model = of_rows(validation=0.2, out=tmp_path / "run").fit(ROWS, SETS)
    summary = RunFolder(tmp_path / "run").read_summary()
    assert summary.evaluated_on == "sets"
    assert model.validation_ == {
        "probability_on_sets": summary.probability_on_sets,
        "share_in_sets": summary.share_in_sets,
    }
    assert model.validation_["probability_on_sets"] > 0.8
    assert model.history_[-1]["share_in_sets"] == summary.share_in_sets
    assert len(model.labels_) == 60  # those that were held out, too
    with pytest.raises(ValueError, match="not empty"):
        model.fit(ROWS, SETS)


def test_nothing_is_left_behind(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    before = torch.get_rng_state()
    of_rows().fit(ROWS, SETS)
    assert list(tmp_path.iterdir()) == []
    assert torch.get_rng_state().equal(before)


def test_an_own_network_is_copied():
    network = nn.Sequential(nn.Flatten(), nn.Linear(64, 12), nn.ReLU())
    before = network[1].weight.detach().clone()
    model = of_images(network=network, epochs=4).fit(images(), SETS)
    assert network[1].weight.equal(before)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict_proba(images()), model.predict_proba(images()))


def test_cross_validation_and_a_search_with_sets_as_targets():
    options = {"cv": 2, "error_score": "raise"}
    assert cross_val_score(of_rows(), ROWS, SETS, **options).min() > 0.8
    pipeline = make_pipeline(StandardScaler(), of_rows())
    grid = {"partiallabelclassifier__settings": [{"train.batch_size": 16}, {"optimizer.lr": 1e-6}]}
    search = GridSearchCV(pipeline, grid, scoring=set_score, **options)
    search.fit(ROWS, as_sets(SETS))
    assert search.best_index_ == 0
    assert search.score(ROWS, SETS) > 0.8


@pytest.mark.long
def test_a_search_in_two_processes():
    search = GridSearchCV(of_rows(), {"epochs": [1, 12]}, cv=2, n_jobs=2, error_score="raise")
    search.fit(ROWS, SETS)
    assert search.best_params_ == {"epochs": 12}


REFUSED = {
    "sspl is a classifier of its own: concont.SSPLClassifier": {"method": "sspl"},
    "did you mean": {"settings": {"method.trsut": 1}},
    "it must be one of": {"method": "nosuch"},
    "holdout": {"validation": 2},
    "epochs": {"epochs": 0},
    "device": {"device": "gpu"},
    "settings are given by name": {"settings": 3},
    "image_size must be a whole number from 1": {"image_size": 0},
    "image_size must be": {"image_size": "8"},
    "image_size must be a whole number": {"image_size": 2.5},
}


@pytest.mark.parametrize("message", REFUSED)
def test_wrong_parameters_are_refused_by_fit(message):
    model = of_rows().set_params(**REFUSED[message])
    with pytest.raises(ValueError, match=message):
        model.fit(ROWS, SETS)
    with pytest.raises(NotFittedError):
        model.predict(ROWS)


def test_data_that_cannot_be_learned_from_is_refused():
    for X, y, message in (
        (ROWS, SETS[:5], "inconsistent numbers"),
        (ROWS, [None] * 60, "every row of y is unlabelled"),
        (ROWS, [{"ant"}] * 60, "one class alone"),
        (images() / 255, SETS, "must be uint8"),
        (np.ma.masked_greater(ROWS, 1), SETS, "masks of arrays"),
        (["nosuch.png"] * 60, SETS, "cannot be read"),
        ([images()[0], *images()[1:, :4]], SETS, "unequal sizes"),
    ):
        with pytest.raises(ValueError, match=message):
            of_rows().fit(X, y)


def test_it_is_a_name_of_the_package():
    assert concont.PartialLabelClassifier is PartialLabelClassifier
