import csv

import numpy as np
import pyarrow.parquet as pq
import pytest

from concont.answers.labels_file import join_candidates, make_labels, make_sheet, write_columns
from concont.answers.resolution import Resolution

COLUMNS = [
    *("image", "label", "probability", "outside", "score", "confident", "candidates"),
    *("overruled", "review"),
]


@pytest.fixture
def found():
    """Three images with odd names: sure of the first, unlabelled, and overruled."""
    return Resolution(
        images=("=1+1.png", "b,b.png", "c.png"),
        classes=("cat", "@dog", "-1"),
        candidates=np.array([[1, 1, 0], [1, 1, 1], [0, 0, 1]], bool),
        partial=np.array([True, False, True]),
        label=np.array([1, 0, 0]),
        predicted=np.array([1, 0, 0]),
        probability=np.array([0.98765432, 0.5, 0.96], np.float32),
        outside=np.array([0.1, 0, 1e-9], np.float32),
        score=np.array([1.4, 0.3, 2.0], np.float32),
        confident=np.array([True, False, True]),
        overruled=np.array([False, False, True]),
        disagreement=np.zeros(3, np.float32),
        review=np.array([3, 1, 2]),
        features=np.eye(3, dtype=np.float32),
        truth=np.array([-1, -1, -1]),
        calibration=None,
    )


def read_csv(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_a_row_an_image_in_the_order_of_the_data(found, tmp_path):
    write_columns(make_labels(found), tmp_path / "labels.csv")
    rows = read_csv(tmp_path / "labels.csv")
    assert list(rows[0]) == COLUMNS
    assert list(rows[0].values()) == [
        *("'=1+1.png", "'@dog", "0.987654", "0.1", "1.4", "true", "cat|@dog", "false", "3")
    ]
    assert [row["label"] for row in rows] == ["'@dog", "cat", "cat"]
    assert [row["candidates"] for row in rows] == ["cat|@dog", "", "-1"]
    assert [row["overruled"] for row in rows] == ["false", "false", "true"]


def test_what_is_unknown_is_empty(found, tmp_path):
    from dataclasses import replace

    write_columns(make_labels(replace(found, confident=None)), tmp_path / "labels.csv")
    assert {row["confident"] for row in read_csv(tmp_path / "labels.csv")} == {""}


def test_parquet_keeps_types_and_names_as_they_are(found, tmp_path):
    write_columns(make_labels(found), tmp_path / "labels.parquet")
    table = pq.read_table(tmp_path / "labels.parquet")
    assert table.column_names == COLUMNS
    assert table["image"].to_pylist() == list(found.images)
    assert table["confident"].to_pylist() == [True, False, True]
    assert table["probability"].to_pylist() == [0.987654, 0.5, 0.96]
    assert str(table.schema.field("review").type) == "int64"


def test_a_sheet_has_the_chosen_images_and_room_for_an_answer(found, tmp_path):
    write_columns(make_sheet(found, np.array([1, 2])), tmp_path / "sheet.csv")
    rows = read_csv(tmp_path / "sheet.csv")
    assert list(rows[0]) == [
        *("image", "annotator", "label", "suggestion", "probability", "candidates", "review")
    ]
    assert [row["image"] for row in rows] == ["b,b.png", "c.png"]
    assert {row["label"] + row["annotator"] for row in rows} == {""}
    assert [row["suggestion"] for row in rows] == ["cat", "cat"]
    assert [row["review"] for row in rows] == ["1", "2"]


def test_the_candidates_of_an_unlabelled_image_are_not_listed(found):
    assert join_candidates(found) == ["cat|@dog", "", "-1"]
