"""What the rows' checks compare; each problem in a real table is in test_table_check.py."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from concont.tables.problems import Problems
from concont.tables.row_check import RowProblems, check_repeated, check_sets, find_first_rows
from concont.tables.sets import parse_sets
from concont.tables.text import read_text
from image_tables import write_csv

HEADER = ("image", "candidates", "votes", "label", "split")
rows = st.tuples(
    st.sampled_from(["a.png", "./a.png", "b.png", "c.png"]),
    st.lists(st.sampled_from("xyz"), max_size=3).map("|".join),
    st.just(""),
    st.sampled_from(["", "x"]),
    st.sampled_from(["train", "test"]),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("rows")


@given(table=st.lists(rows, min_size=1, max_size=8))
def test_repeated_images_and_classes_are_those_that_a_plain_loop_finds(table, folder):
    problems = Problems()
    text = read_text(write_csv(folder / "t.csv", table, HEADER), None, None, problems)
    sets, add = parse_sets(text), RowProblems(text, problems)
    check_sets(sets, add)
    check_repeated(text, sets, add)
    found = {(kind.kind, kind.severity, p.row) for kind in problems.kinds for p in kind.problems}

    seen, expected, first = {}, set(), []
    for i, (image, candidates, _, label, split) in enumerate(table):
        image, members = image.removeprefix("./"), candidates.split("|")
        content = (sorted(members), label, split)
        if len(set(members)) < len(members):
            expected.add(("repeated class", "error", i + 2))
        if image in seen:
            severity = "warning" if content == table_content(table[seen[image]]) else "error"
            expected.add(("repeated image", severity, i + 2))
        first.append(seen.setdefault(image, i))
    assert found == expected
    assert np.array_equal(find_first_rows(text), first)


def table_content(row):
    return (sorted(row[1].split("|")), row[3], row[4])


def test_the_same_votes_in_another_order_say_the_same(folder):
    table = [["a.png", "x|y", "2|1", "", ""], ["a.png", "y|x", "1|2", "", ""]]
    table += [["a.png", "x|y", "1|2", "", ""]]
    problems = Problems()
    text = read_text(write_csv(folder / "t.csv", table, HEADER), None, None, problems)
    check_repeated(text, parse_sets(text), RowProblems(text, problems))
    assert [(k.severity, p.row) for k in problems.kinds for p in k.problems] == [
        ("error", 4),
        ("warning", 3),
    ]
