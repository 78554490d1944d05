"""Which names are compared; each problem in a real table is in test_table_check.py."""

import pytest

from concont.tables.class_check import check_classes
from concont.tables.problems import Problems
from concont.tables.row_check import RowProblems
from concont.tables.sets import parse_sets
from concont.tables.text import read_text
from image_tables import write_csv


def find_kinds(path, sets, known=None):
    problems = Problems()
    rows = [[f"{k}.png", candidates] for k, candidates in enumerate(sets)]
    text = read_text(write_csv(path / "t.csv", rows), None, None, problems)
    check_classes(text, parse_sets(text), RowProblems(text, problems), known)
    return [(kind.kind, [p.row for p in kind.problems]) for kind in problems.kinds]


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("panther", ["rare class"]),  # like no other
        ("elefant", ["misspelt class"]),
        ("ELEPHANT", ["misspelt class"]),
        ("elephant 2", ["rare class"]),  # another number is another name
        ("elephant|elephants", ["misspelt class"]),
        ("elephant", []),
    ],
)
def test_a_rare_name_is_misspelt_if_it_is_like_a_frequent_one(name, kinds, tmp_path):
    found = find_kinds(tmp_path, ["elephant|zebra"] * 6 + [name])
    assert found == [(kind, [8]) for kind in kinds]


def test_two_rare_names_that_are_alike_are_not_told_apart(tmp_path):
    assert find_kinds(tmp_path, ["elephant|zebra"] * 2 + ["elefant|zebra"] * 2) == []


def test_with_a_list_of_classes_nothing_is_guessed(tmp_path):
    sets = ["elephant|zebra"] * 6 + ["elefant|zebra"]
    assert find_kinds(tmp_path, sets, ["elephant", "elefant", "zebra"]) == [("rare class", [8])]
    assert ("unknown class", [8]) in find_kinds(tmp_path, sets, ["elephant", "zebra"])


def test_a_thousand_rare_names_take_no_time(tmp_path):
    found = find_kinds(tmp_path, [f"name of {k * 7919}" for k in range(5000)] + ["a|b"] * 9)
    assert [kind for kind, _ in found] == ["rare class"]
