from pathlib import Path

import numpy as np
import pytest

from concont.errors import DataError
from concont.tables.problems import (
    Problems,
    TableProblem,
    find_nearest,
    refuse_errors,
    suggest,
    suggest_images,
)

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


def test_errors_are_raised_in_one_line_with_what_may_help():
    problems = Problems()
    refuse_errors(problems, hint="look elsewhere")
    for row in range(4):
        problems.add("error", "bad", (FILE, row), "is bad")
    with pytest.raises(DataError, match="row 2: is bad; and 1 more error elsewhere; look up$"):
        refuse_errors(problems, " elsewhere", "look up")


def test_another_folder_is_named_only_where_one_may_be_given(tmp_path):
    problems = Problems()
    problems.add("error", "path", (FILE, 2), "names no image")
    assert suggest_images(problems.kinds, FILE, None) == ""
    problems.add("error", "missing image", (FILE, 3), "there is no file")
    assert "--images FOLDER" in suggest_images(problems.kinds, FILE, None)
    assert suggest_images(problems.kinds, FILE, tmp_path) == ""
    assert suggest_images(problems.kinds, tmp_path, None) == ""


def test_the_nearest_name_is_found_whatever_its_capitals():
    assert find_nearest("hrose", ["zebra", "Horse"]) == "Horse"
    assert find_nearest("ox", ["zebra", "Horse"]) is None
    assert suggest("hrose", ["horse"]) == "; did you mean 'horse'?"
    assert suggest("ox", []) == ""
