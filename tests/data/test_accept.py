import numpy as np
import pytest
import torch
from scipy import sparse

from concont.data.accept import accept_arrays
from concont.data.sources import from_arrays
from concont.errors import DataError

IMAGES = np.random.RandomState(0).randint(0, 256, (6, 8, 8, 3)).astype(np.uint8)
LABELS = np.array([0, 1, 2, 0, 1, -1])
SETS = np.array([[1, 1, 0], [0, 1, 0], [0, 1, 1], [1, 0, 0], [1, 1, 1], [1, 1, 1]], dtype=bool)
STRICT = {"x_train": IMAGES, "y_train": LABELS, "candidates": SETS}
NAMES = ["ant", "bee", "cat"]
NAMED = [None if k < 0 else NAMES[k] for k in LABELS]
NAMED_SETS = [{NAMES[k] for k in np.flatnonzero(row)} if not row.all() else None for row in SETS]

IMAGE_FORMS = {
    "lists": IMAGES.tolist(),
    "whole numbers": IMAGES.astype(np.int64),
    "a tensor, channels first": torch.from_numpy(IMAGES).permute(0, 3, 1, 2),
    "a list of arrays": list(IMAGES),
}


@pytest.mark.parametrize("form", IMAGE_FORMS)
def test_images_in_every_form_are_the_same_data(form):
    found = from_arrays(accept_arrays({**STRICT, "x_train": IMAGE_FORMS[form]}))
    assert found.digest == from_arrays(STRICT).digest


SET_FORMS = {
    "0 and 1": SETS.astype(int),
    "lists": SETS.astype(int).tolist(),
    "a tensor": torch.from_numpy(SETS),
    "sets of numbers": [set(np.flatnonzero(row).tolist()) for row in SETS],
}
LABEL_FORMS = {
    "a list": LABELS.tolist(),
    "None": [None if k < 0 else k for k in LABELS.tolist()],
    "NaN": np.where(LABELS < 0, np.nan, LABELS),
    "a tensor": torch.from_numpy(LABELS),
    "floats": LABELS.astype(float),
}


@pytest.mark.parametrize("labels", LABEL_FORMS)
@pytest.mark.parametrize("sets", SET_FORMS)
def test_sets_and_labels_in_every_form_are_the_same_data(sets, labels):
    given = {**STRICT, "candidates": SET_FORMS[sets], "y_train": LABEL_FORMS[labels]}
    found = from_arrays(accept_arrays(given))
    assert found.digest == from_arrays(STRICT).digest
    assert found.classes == ("0", "1", "2")


@pytest.mark.parametrize(
    "labels", [NAMED, LABELS, np.array(["" if n is None else n for n in NAMED])]
)
def test_names_of_classes(labels):
    given = {"x_train": IMAGES, "candidates": NAMED_SETS, "y_train": labels}
    found = from_arrays(accept_arrays(given))
    assert found.classes == tuple(NAMES)
    assert np.array_equal(found.candidates, SETS)
    assert np.array_equal(found.y_train, LABELS)
    more = from_arrays(accept_arrays({**given, "classes": [*reversed(NAMES), "dog"]}))
    assert more.classes == ("cat", "bee", "ant", "dog")
    assert np.array_equal(more.candidates[0], [False, True, True, False])
    alone = from_arrays(accept_arrays({"x_train": IMAGES, "y_train": NAMED}))
    assert alone.classes == tuple(NAMES)
    assert np.array_equal(alone.y_train, LABELS)


VOTES = SETS * np.arange(1, 4)


class Frame:
    """The least that makes a DataFrame."""

    def __init__(self, values, columns):
        self.values, self.columns = values, columns

    def __array__(self, dtype=None, copy=None):
        return self.values


WEIGHT_FORMS = {
    "lists": VOTES.tolist(),
    "a sparse matrix": sparse.csr_array(VOTES),
    "a tensor with a gradient": torch.tensor(VOTES * 1.0, requires_grad=True),
    "a frame": Frame(VOTES, NAMES),
    "a frame in another order": Frame(VOTES[:, ::-1], NAMES[::-1]),
    "a frame without names": Frame(VOTES, range(3)),
}


@pytest.mark.parametrize("form", WEIGHT_FORMS)
def test_votes_in_every_form_are_the_same_data(form):
    given = {"x_train": IMAGES, "candidates": NAMED_SETS, "candidate_weights": WEIGHT_FORMS[form]}
    found = from_arrays(accept_arrays(given))
    assert found.weights.tolist() == VOTES.tolist()
    nameless = {"x_train": IMAGES, "candidates": SETS, "candidate_weights": VOTES.tolist()}
    assert from_arrays(accept_arrays(nameless)).weights.tolist() == VOTES.tolist()


def test_votes_that_claim_a_vast_shape_are_refused_before_memory_is_taken():
    given = {"x_train": IMAGES, "candidates": SETS}
    with pytest.raises(DataError, match="candidate_weights: .* 1,000,000,000,000 classes take"):
        accept_arrays({**given, "candidate_weights": sparse.csr_array((len(SETS), 10**12))})


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, torch.from_numpy])
def test_rows_that_nobody_voted_on_are_unlabelled(form):
    votes = VOTES * (LABELS >= 0)[:, None]
    given = {"x_train": IMAGES, "candidate_weights": form(votes), "candidates": form(votes) > 0}
    found = from_arrays(accept_arrays(given))
    assert np.array_equal(found.candidates, SETS)
    assert found.weights.tolist() == votes.tolist()
    votes[5] = [0, 1, 0]
    with pytest.raises(DataError, match="row 5 of candidates has no candidate"):
        accept_arrays({**given, "candidate_weights": votes})


def test_classes_that_are_numbers_are_no_places():
    sets = [{2, 5}, {5}, {9}, {2}, None, None]
    given = {"x_train": IMAGES, "candidates": sets, "y_train": [2, 5, 9, 2, -1, None]}
    found = from_arrays(accept_arrays(given))
    assert found.classes == ("2", "5", "9")
    assert found.y_train.tolist() == [0, 1, 2, 0, -1, -1]


def test_they_are_so_in_every_type_of_whole_numbers():
    for kind in (np.uint8, np.int32, np.float64):
        given = {"x_train": IMAGES, "y_train": np.array([1, 2, 3, 2, 1, 1], kind)}
        found = from_arrays(accept_arrays({**given, "classes": [1, 2, 3]}))
        assert found.y_train.tolist() == [0, 1, 2, 1, 0, 0]
        given["y_train"] = [1.0, 2.0, 3.0, 2.0, 1.0, -1.0]
        found = from_arrays(accept_arrays({**given, "classes": np.array([1, 2, 3], kind)}))
        assert found.y_train.tolist() == [0, 1, 2, 1, 0, -1]


@pytest.mark.parametrize("labels", [[None] * 6, [np.nan] * 6, [""] * 6])
def test_labels_may_all_be_unknown(labels):
    given = {"x_train": IMAGES, "candidates": NAMED_SETS, "y_train": labels}
    found = from_arrays(accept_arrays(given))
    assert found.classes == tuple(NAMES)
    assert (found.y_train == -1).all()


def test_features_of_any_numbers():
    rows = np.arange(12).reshape(6, 2)
    for given in (rows, rows.tolist(), torch.from_numpy(rows), rows.astype(object)):
        found = from_arrays(accept_arrays({**STRICT, "x_train": given}))
        assert found.x_train.dtype == np.float64
        assert np.array_equal(found.x_train, rows)
    single = accept_arrays({"x_train": rows.astype(np.float32)})["x_train"]
    assert single.dtype == np.float32


REFUSED = {
    "candidates holds 'fox', which is none of the classes": {
        "candidates": [{"fox"}] * 6,
        "classes": NAMES,
    },
    "y_train holds 'fox', which is none": {"y_train": ["fox"] * 6, "candidates": NAMED_SETS},
    "y_train row 1 has several labels": {"y_train": ["a", "a|b", "b", "c", "b", "a"]},
    "candidates: row 1 has|row 1 of candidates has an empty set": {
        "candidates": [{"a"}, set(), {"b"}, {"a"}, {"b"}, None]
    },
    "x_train is no array": {"x_train": [[[0, 1]], [[0]]]},
    "x_train is int64": {"x_train": IMAGES.astype(int) * 2},
    "x_train is float64": {"x_train": IMAGES / 255},
    "candidates is masked": {"candidates": np.ma.masked_array(SETS, ~SETS)},
    "candidate_weights holds 'cat ', which is none of the classes": {
        "candidate_weights": Frame(VOTES[:, ::-1], ["cat ", "bee", "ant"]),
        "classes": NAMES,
    },
    "candidate_weights holds 1, which is none": {
        "candidate_weights": Frame(VOTES, [1, 2, 3]),
        "classes": NAMES,
    },
    "candidate_weights has 2 columns of 'ant'": {
        "candidate_weights": Frame(VOTES, ["ant", "ant", "bee"]),
        "classes": NAMES,
    },
    "candidate_weights has 0 columns of 'cat'": {
        "candidate_weights": Frame(VOTES[:, :2], ["ant", "bee"]),
        "classes": NAMES,
    },
    "y_train is masked": {"y_train": np.ma.masked_equal(LABELS, 2)},
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_cannot_be_taken_is_refused(message):
    with pytest.raises(DataError, match=message):
        from_arrays(accept_arrays({**STRICT, **REFUSED[message]}))


def test_what_is_as_it_must_be_is_not_copied():
    found = accept_arrays({**STRICT, "x_test": None})
    assert found["x_train"] is IMAGES
    assert found["candidates"] is SETS
    assert "x_test" not in found
