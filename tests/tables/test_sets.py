import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from concont.tables.problems import Problems
from concont.tables.sets import parse_sets, sort_classes, split_names
from concont.tables.text import read_text
from image_tables import write_csv


def test_numbers_are_sorted_by_value_and_names_by_letters():
    names = ["dog", "10", "9", "-1", "2.5", "cat", "1e3", "02", "2"]
    assert sort_classes(names) == ["-1", "02", "2", "2.5", "9", "10", "1e3", "cat", "dog"]


words = st.lists(st.sampled_from(["a", " b", "c d ", "", "é"]), max_size=4)


@given(st.lists(words, max_size=8))
def test_texts_are_taken_apart_as_python_does_it(lists):
    texts = ["|".join(parts) for parts in lists]
    names, row, size = split_names(pa.array(texts, pa.string()))
    expected = [text.split("|") if text else [] for text in texts]
    assert names.to_pylist() == [name.strip() for parts in expected for name in parts]
    assert row.tolist() == [i for i, parts in enumerate(expected) for _ in parts]
    assert size.tolist() == [len(parts) for parts in expected]


def test_rows_become_arrays_and_what_makes_no_sense_is_marked(tmp_path):
    rows = [
        ["0", "b|a", "3|0", "b", "train"],
        ["1", "", "", "a", "Test"],
        ["2", "a||b", "1|x|2", "", "dev"],
        ["3", "10|a|9", "", "zz", ""],
        ["4", "a|b", "1|2|3", "", ""],
    ]
    header = ("image", "candidates", "votes", "label", "split")
    text = read_text(write_csv(tmp_path / "t.csv", rows, header), None, None, Problems())
    sets = parse_sets(text)
    assert sets.classes == ("9", "10", "a", "b", "zz")
    assert sets.members.row.tolist() == [0, 0, 2, 2, 2, 3, 3, 3, 4, 4]
    assert sets.members.name.tolist() == [3, 2, 2, -1, 3, 1, 2, 0, 2, 3]
    assert sets.votes.tolist() == [3, 0, 1, 0, 2, 1, 1, 1, 1, 1]
    assert sets.labels.tolist() == [3, 2, -1, 4, -1]
    assert sets.is_test.tolist() == [False, True, False, False, False]
    assert sets.strange_splits.tolist() == [2]
    assert sets.misfit_votes.tolist() == [4]
    assert sets.odd_votes.tolist() == [2]
    assert np.array_equal(sets.n_counts, [2, 0, 3, 0, 3])
