import tracemalloc
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy import sparse

from concont import memory
from concont.data.targets import as_sets, encode_targets, read_targets

NAN = float("nan")
ROWS = [{"cat", "dog"}, {"dog"}, None, {"ant"}]  # what all of these say
MATRIX = np.array([[0, 1, 1], [0, 0, 1], [1, 1, 1], [1, 0, 0]])
NAMES = ["ant", "cat", "dog"]


class Frame:
    """The least that makes a DataFrame, of which the tests' environment has none."""

    def __init__(self, values, columns):
        self.values, self.columns = np.asarray(values), columns

    def __array__(self, dtype=None, copy=None):
        return self.values


class Series:
    """The least that makes a column of one."""

    def __init__(self, values):
        self.values = np.empty(len(values), dtype=object)
        self.values[:] = values

    def __array__(self, dtype=None, copy=None):
        return self.values


NAMED = {
    "sets": ROWS,
    "frozensets": [None if row is None else frozenset(row) for row in ROWS],
    "lists": [None if row is None else sorted(row) for row in ROWS],
    "arrays": [None if row is None else np.array(sorted(row)) for row in ROWS],
    "tuples with NaN": [NAN if row is None else tuple(row) for row in ROWS],
    "texts": ["cat|dog", "dog", None, "ant"],
    "texts with blanks": [" dog | cat", "dog", "", "ant"],
    "texts with NaN": ["dog|cat", "dog", NAN, "ant"],
    "an array of texts": np.array(["dog|cat", "dog", "", "ant"]),
    "a series of texts": Series(["dog|cat", "dog", NAN, "ant"]),
    "a series of sets": Series(ROWS),
    "pandas' own missing": ["dog|cat", "dog", type("NAType", (), {})(), "ant"],
    "a frame": Frame(MATRIX, NAMES),
    "a frame of floats": Frame(np.where(MATRIX.all(axis=1, keepdims=True), NAN, MATRIX), NAMES),
    "a frame with pandas' own missing": Frame(
        np.array([*MATRIX[:2].tolist(), [type("NAType", (), {})()] * 3, MATRIX[3]], object), NAMES
    ),
    "a set of all": [*ROWS[:2], {"cat", "dog", "ant"}, ROWS[3]],
}
NUMBERED = {
    "a matrix": MATRIX,
    "booleans": MATRIX.astype(bool),
    "lists of 0 and 1": MATRIX.tolist(),
    "a sparse matrix": sparse.csr_matrix(MATRIX),
    "a sparse array": sparse.coo_array(MATRIX),
    "a tensor": torch.tensor(MATRIX),
    "a tensor with a gradient": torch.tensor(MATRIX * 1.0, requires_grad=True),
    "sets of numbers": [{1, 2}, {2}, None, {0}],
    "NumPy's numbers": [{np.int64(1), np.int64(2)}, [np.int64(2)], None, (0,)],
}


@pytest.mark.parametrize("form", NAMED | NUMBERED)
def test_every_form_says_the_same(form):
    found = read_targets((NAMED | NUMBERED)[form])
    assert found.classes.tolist() == (NAMES if form in NAMED else [0, 1, 2])
    assert found.sets.dtype == bool
    assert np.array_equal(found.sets, MATRIX)
    assert found.unlabelled.tolist() == [False, False, True, False]


@pytest.mark.parametrize("form", NAMED)
def test_every_form_becomes_sets(form):
    assert as_sets(NAMED[form]) == [None if row is None else frozenset(row) for row in ROWS]


@pytest.mark.parametrize("labels", [["b", "a", "b"], [7, -1, 7], np.array([2.0, 1.0, 2.0])])
def test_plain_labels_are_sets_of_one(labels):
    found = read_targets(labels)
    assert found.classes.tolist() == sorted(set(np.asarray(labels).tolist()))
    assert found.sets.tolist() == [[False, True], [True, False], [False, True]]
    assert not found.unlabelled.any()
    assert read_targets([None, *labels]).unlabelled.tolist() == [True, False, False, False]


def test_a_single_class_says_something_of_a_row():
    found = read_targets(["a", None, "a"])
    assert found.unlabelled.tolist() == [False, True, False]


REFUSED = {
    "row 1 of y has an empty set": [{"a"}, set(), {"b"}],
    "row 0 of y has an empty set or name": ["a||b", "b"],
    "row 2 of y has no candidate": [[0, 1], [1, 0], [0, 0]],
    "by numbers and by words": [{"a"}, {1}],
    "row 1 of y holds NaN beside numbers": np.array([[0, 1.0], [NAN, 1]]),
    "must hold 0 and 1 alone \\(or booleans\\), no texts": np.array([["a", "b"], ["c", "d"]]),
    "must hold 0 and 1 alone \\(or booleans\\): candidate": np.array([[0, 2], [1, 1]]),
    "must hold 0 and 1 alone \\(or booleans\\)$": np.array([[None, {1}], [0, 1]]),
    "Unknown label type: y holds continuous": np.linspace(0, 1, 5),
    "y has 3 axes": np.ones((2, 2, 2)),
    "row 1 of y is a dict, which names no class": ["a", {"a": 2, "b": 1}],
    "masks of arrays": np.ma.masked_equal([0, 1, 2], 1),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_is_no_set_is_refused(message):
    with pytest.raises(ValueError, match=message):
        read_targets(REFUSED[message])


def test_known_classes_take_what_they_know():
    classes = np.array(NAMES)
    found = encode_targets(["cat|fox", "fox", None, "dog"], classes)
    assert found.sets.astype(int).tolist() == [[0, 1, 0], [0, 0, 0], [1, 1, 1], [0, 0, 1]]
    assert found.unlabelled.tolist() == [False, False, True, False]
    by_place = encode_targets([2, 0], classes).sets
    assert by_place.astype(int).tolist() == [[0, 0, 1], [1, 0, 0]]
    assert np.array_equal(encode_targets(MATRIX, classes).sets, MATRIX)
    turned = encode_targets(Frame(MATRIX[:, ::-1], NAMES[::-1]), classes)
    assert np.array_equal(turned.sets, MATRIX)
    numbers = encode_targets([5, 7], np.array([7, 9])).sets
    assert numbers.astype(int).tolist() == [[0, 0], [1, 0]]
    with pytest.raises(ValueError, match="y has 2 columns; there are 3 classes"):
        encode_targets(MATRIX[:, :2] | MATRIX[:, 2:], classes)


def test_what_only_looks_like_a_frame_is_none():
    odd = SimpleNamespace(columns=["a"], __len__=lambda: 1)
    with pytest.raises(ValueError, match="0 axes"):
        read_targets(odd)


MANY = 40_000


@pytest.mark.parametrize(
    "y",
    [
        np.arange(MANY),
        [str(k) for k in range(MANY)],
        [{k} for k in range(MANY)],
        ["|".join(map(str, range(MANY))), *["1"] * (MANY - 1)],
        sparse.csr_matrix((60, 10**9), dtype=bool),
    ],
    ids=["numbers", "texts", "sets", "one row", "sparse"],
)
def test_more_classes_than_memory_holds_are_refused_before_it_is_taken(y, monkeypatch):
    monkeypatch.setattr(memory, "count_memory", lambda: 10**9)
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="y: candidate sets of .* are these numbers of class"):
            read_targets(y)
        assert tracemalloc.get_traced_memory()[1] < 10**8
    finally:
        tracemalloc.stop()


def test_a_long_text_takes_no_more_for_the_other_rows():
    y = ["|".join(map(str, range(500))), *["1"] * 5000]
    tracemalloc.start()
    assert read_targets(y).sets.sum() == 500 + 5000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2 * 10**7
