from pathlib import Path

import numpy as np

from concont.tables.problems import Problems, TableProblem, find_nearest, suggest

FILE = Path("t.csv")


def test_a_problem_is_one_line():
    assert str(TableProblem("error", "x", FILE, 7, "is bad")) == "t.csv row 7: is bad"
    assert str(TableProblem("error", "x", Path("a\nb"), None, "is bad")) == "a\\nb: is bad"


def test_all_are_counted_and_only_those_kept_are_put_into_words():
    problems, described = Problems(limit=3), []

    def describe(i):
        described.append(i)
        return f"number {i}"

    for rows in (np.arange(2), np.arange(5, 1000), np.arange(0)):
        problems.add_rows("warning", "odd", rows, lambda i: (FILE, i), describe)
    problems.add("error", "bad", (FILE, None), "is bad")
    first, second = problems.kinds
    assert (first.severity, first.kind, first.count) == ("error", "bad", 1)
    assert (second.severity, second.kind, second.count) == ("warning", "odd", 997)
    assert [p.row for p in second.problems] == described == [0, 1, 5]
    assert (problems.count("error"), problems.count("warning")) == (1, 997)


def test_the_nearest_name_is_found_whatever_its_capitals():
    assert find_nearest("hrose", ["zebra", "Horse"]) == "Horse"
    assert find_nearest("ox", ["zebra", "Horse"]) is None
    assert suggest("hrose", ["horse"]) == "; did you mean 'horse'?"
    assert suggest("ox", []) == ""
