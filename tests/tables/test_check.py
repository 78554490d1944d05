"""Every kind of problem in a real table, with the row that a person would look at."""

import shutil
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from table_check import make_table as make_large_table
from table_check import measure

from concont.errors import DataError
from concont.tables.check import check_table
from image_tables import (
    TWO_COLUMNS,
    list_problems,
    make_images,
    make_odd_table,
    make_table,
    write_csv,
)

FULL = ("image", "candidates", "votes", "label", "split")


def check(table, **options):
    return list_problems(check_table(table, **options))


def test_a_good_table_has_no_problem(tmp_path):
    report = check_table(make_table(tmp_path))
    assert (report.errors, report.warnings, report.kinds) == (0, 0, ())
    assert (report.rows, report.labeled, report.unlabeled, report.test) == (12, 12, 0, 0)
    assert report.full == 0
    assert report.classes == ("a", "b", "c")


def test_what_is_there_is_counted(tmp_path):
    changes = {
        3: ["1.png", "", "", "", ""],
        4: ["2.png", "", "", "c", " TEST "],
        5: ["3.png", " a | b", "2|1", "a", "train"],
    }
    rows = {k: [f"{k - 2}.png", "a|b|c", "1|1|1", "", ""] for k in range(2, 14)}
    report = check_table(make_table(tmp_path, rows | changes, FULL))
    assert list_problems(report) == []
    assert (report.labeled, report.unlabeled, report.test) == (10, 1, 1)
    assert report.full == 9


@pytest.mark.parametrize("problem", TWO_COLUMNS)
def test_a_problem_is_told_with_its_row(problem, tmp_path):
    _, severity, row, message = TWO_COLUMNS[problem]
    table = make_odd_table(tmp_path, problem)
    ((found, at, said),) = check(table)
    assert (found, at) == (severity, row)
    assert message.format(folder=table.parent) in said
    assert "\n" not in said


VOTED = {
    "too few counts": (["3.png", "a|b", "2", "", ""], "error", "votes '2': 1 for 2 candidates"),
    "counts without candidates": (["3.png", "", "2", "", ""], "error", "1 for 0 candidates"),
    "a count that is broken": (["3.png", "a|b", "2|0.5", "", ""], "error", "a whole number from 0"),
    "a count below 0": (["3.png", "a|b", "2|-1", "", ""], "error", "'2|-1': each must be a whole"),
    "an endless count": (["3.png", "a", "9" * 30, "", ""], "error", "each must be a whole number"),
    "only zeros": (["3.png", "a|b", "0|0", "", ""], "error", "all its votes are 0"),
    "a split of another name": (
        ["3.png", "a|b", "", "a", "validation"],
        "error",
        "split 'validation' is neither train nor test; concont holds images out by itself",
    ),
    "a test row without a label": (["3.png", "a", "", "", "test"], "error", "needs a label"),
    "two labels": (["3.png", "a|b", "", "a|b", ""], "error", "'a|b' is more than one class"),
    "a label outside the set": (["3.png", "a|b", "", "c", ""], "warning", "label 'c' is not among"),
}


@pytest.mark.parametrize("problem", VOTED)
def test_a_problem_of_votes_labels_and_splits_is_told_with_its_row(problem, tmp_path):
    row, severity, message = VOTED[problem]
    rows = {k: [f"{k - 2}.png", "a|b|c", "1|0|5", "a", ""] for k in range(2, 14)}
    first = check(make_table(tmp_path, rows | {5: row}, FULL))[0]
    assert first[:2] == (severity, 5)
    assert message in first[2]


def test_a_class_twice_does_not_make_a_set_full(tmp_path):
    make_images(tmp_path, [f"{k}.png" for k in range(5)])
    rows = [["0.png", "a|a"], ["1.png", "a|b"], ["2.png", "a"], ["3.png", ""], ["4.png", "a|"]]
    assert check_table(write_csv(tmp_path / "t.csv", rows), decode=False).full == 1


def test_a_class_list_in_another_unicode_form_is_the_same_list(tmp_path):
    table = make_table(tmp_path, {k: [f"{k - 2}.png", "\u00e4|b"] for k in range(2, 6)})
    known = ["a\u0308", "a", "b", "c"]
    assert check_table(table, classes=known, decode=False).errors == 0


def test_an_empty_cell_of_votes_counts_each_candidate_once(tmp_path):
    rows = {k: [f"{k - 2}.png", "a|b", "", "", ""] for k in range(2, 14)}
    assert check(make_table(tmp_path, rows, FULL)) == []


def test_a_test_image_that_is_trained_on_is_an_error(tmp_path):
    rows = {k: [f"{k - 2}.png", "a|b", "", "a", ""] for k in range(2, 14)}
    rows[9] = ["copy.png", "a|b", "", "a", "test"]
    table = make_table(tmp_path, rows, FULL)
    shutil.copy(tmp_path / "0.png", tmp_path / "copy.png")
    ((severity, row, said),) = check(table)
    assert (severity, row) == ("error", 9)
    assert "same content as 0.png (row 2), and one is for training, the other for the test" in said
    assert check(table, decode=False) == []


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("images,candidates", "there is no column image; did you mean 'images'?"),
        ("image,Candidates", "there is no column candidates; did you mean 'Candidates'?"),
        ("x,y", "there is no column image (it has: x, y)"),
        ("label,candidate", "there is no column image (it has: label, candidate)"),
    ],
)
def test_a_missing_column_is_told_with_the_nearest_name(header, message, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(f"{header}\na.png,b\n")
    (kind,) = check_table(path).kinds  # and nothing that would follow from it
    assert (kind.kind, kind.severity, kind.problems[0].row) == ("column", "error", None)
    assert message in kind.problems[0].message


def test_a_column_that_is_not_read_may_be_misspelt(tmp_path):
    rows = {k: [f"{k - 2}.png", "a|b", "x", "y"] for k in range(2, 14)}
    table = make_table(tmp_path, rows, ("image", "candidates", "vote", "remark"))
    expected = "column 'vote' is not read; did you mean votes?"
    assert check(table) == [("warning", None, expected)]


def test_a_rare_name_much_like_a_frequent_one_may_be_misspelt(tmp_path):
    good = {k: [f"{k - 2}.png", "zebra|site 1|site 2"] for k in range(2, 14)}
    changes = {5: ["3.png", "zebra|zbera"], 6: ["4.png", "zebra|Zebra"], 7: ["5.png", "site 3"]}
    assert check(make_table(tmp_path, good | changes)) == [
        ("warning", 5, "'zbera' is rare and much like 'zebra'; is it misspelt?"),
        ("warning", 6, "'Zebra' is rare and much like 'zebra'; is it misspelt?"),
        ("warning", 7, "'site 3' is a candidate here and nowhere else"),
    ]


def test_a_label_that_is_no_candidate_anywhere_may_be_misspelt(tmp_path):
    rows = {k: [f"{k - 2}.png", "zebra|horse", "", "zebra", ""] for k in range(2, 14)}
    rows[6] = ["4.png", "", "", "zebar", ""]
    expected = "label 'zebar' is in no training row's candidates; did you mean 'zebra'?"
    assert check(make_table(tmp_path, rows, FULL)) == [("warning", 6, expected)]


def test_a_class_that_is_not_in_the_list_is_an_error(tmp_path):
    rows = {k: [f"{k - 2}.png", "zebra|horse", "", "zebra", ""] for k in range(2, 14)}
    rows[6] = ["4.png", "zebra|hrose", "", "zebra", ""]
    rows[8] = ["6.png", "", "", "ox", "test"]
    found = check(make_table(tmp_path, rows, FULL), classes=["zebra", "horse"])
    assert found[:2] == [
        ("error", 6, "'hrose' is no known class; did you mean 'horse'?"),
        ("error", 8, "label 'ox' is no known class"),
    ]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "has no rows"),
        ([["0.png", ""], ["1.png", " "]], "no row has candidates: everything is unlabelled"),
        ([["0.png", "a"], ["1.png", "a"]], "has 1 class; a classifier needs at least two"),
    ],
)
def test_a_table_from_which_nothing_can_be_learnt_is_an_error(rows, message, tmp_path):
    make_images(tmp_path, ["0.png", "1.png"])
    assert check(write_csv(tmp_path / "t.csv", rows)) == [("error", None, message)]


def test_only_the_first_of_a_kind_are_listed(tmp_path):
    table = write_csv(tmp_path / "t.csv", [[f"{k}.png", "a|b"] for k in range(50)])
    (kind,) = check_table(table).kinds
    assert (kind.kind, kind.count, len(kind.problems)) == ("missing image", 50, 20)
    assert [p.row for p in kind.problems] == list(range(2, 22))
    (kind,) = check_table(table, limit=None).kinds
    assert len(kind.problems) == 50


def test_a_parquet_table_counts_its_rows_from_1(tmp_path):
    make_images(tmp_path / "photos", ["a.png", "b.png"])
    columns = {"image": ["a.png", "b.png", "c.png"], "candidates": [["x", "y"], ["x", "y"], None]}
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    ((severity, row, _),) = check(tmp_path / "t.parquet", images=tmp_path / "photos")
    assert (severity, row) == ("error", 3)


def test_unlabelled_images_are_read_too_but_none_twice(tmp_path):
    table = make_table(tmp_path / "t")
    make_images(tmp_path / "more", ["x.png", "deep/y.png"], start=70)
    (tmp_path / "more" / "bad.jpg").write_text("no image")
    report = check_table(table, unlabeled=tmp_path / "more")
    assert (report.rows, report.unlabeled) == (15, 3)
    ((severity, row, said),) = list_problems(report)
    assert (severity, row) == ("error", None)
    assert report.kinds[0].problems[0].file == tmp_path / "more" / "bad.jpg"
    assert "bad.jpg cannot be read" in said
    assert check_table(table, unlabeled=tmp_path / "t").rows == 12


def test_many_images_are_read_by_many_processes(tmp_path):
    rows = {k: [f"{k - 2}.png", "a|b"] for k in range(2, 152)}
    table = make_table(tmp_path, rows, n=150)
    (tmp_path / "77.png").write_bytes(b"")
    told = []
    report = check_table(table, progress=lambda done, total: told.append((done, total)))
    assert list_problems(report) == [("error", 79, "77.png cannot be read: the file is empty")]
    assert told[-1] == (150, 150)
    assert told == sorted(told)


def test_a_large_table_takes_seconds_and_little_memory(tmp_path):
    """The full size: benchmarks/table_check.py."""
    record = measure(make_large_table(tmp_path, 4_000))
    assert (record["rows"], record["errors"]) == (4_000, 0)
    assert record["seconds"] < 2  # a tenth of it, usually


def test_random_damage_to_a_table_never_breaks_the_check(tmp_path):
    good = make_table(tmp_path, header=("image", "candidates")).read_bytes()
    stream = np.random.RandomState(0)
    for _ in range(60):
        spoilt = bytearray(good)
        for at in stream.randint(0, len(spoilt), 3):
            spoilt[at] = stream.choice(list(b'",\n|;. \x00\xc3\xa4'))
        (tmp_path / "t.csv").write_bytes(spoilt)
        with suppress(DataError):  # and nothing else
            check_table(tmp_path / "t.csv", decode=False)
