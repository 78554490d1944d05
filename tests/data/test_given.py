import numpy as np
import pytest

from concont.data.given import check_names, take_arrays, to_array
from concont.errors import DataError


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("X_test", "x_test"),
        ("class_names", "classes"),
        ("candidate", "candidates"),
        ("X_TRAIN", "x_train"),
        ("ytest", "y_test"),
    ],
)
def test_a_misspelt_name_is_refused_with_the_nearest(wrong, right):
    there = [name for name in ("x_train", "y_train") if name != right]
    with pytest.raises(DataError, match=f"toy: unknown array {wrong}; did you mean {right}?"):
        check_names([*there, wrong], "toy")


def test_other_names_are_told(caplog):
    check_names(["x_train", "y_train", "notes", "x_train_raw"], "toy")
    assert "toy: not read: notes, x_train_raw" in caplog.text


def test_what_is_not_known_is_left_out(caplog):
    found = take_arrays({"x_train": [[1.0]], "y_test": None, "author\n": "me"}, "toy")
    assert list(found) == ["x_train"]
    assert "author\\n" in caplog.text


def test_a_mask_is_not_ignored():
    masked = np.ma.array([1, 2, 3], mask=[False, True, True])
    with pytest.raises(DataError, match="toy: y_train is masked in 2 places.*labels with -1"):
        to_array(masked, "y_train", "toy")
    whole = np.ma.array([1, 2, 3], mask=False)
    assert to_array(whole, "y_train", "toy").tolist() == [1, 2, 3]


def test_rows_of_unequal_lengths_are_no_array():
    with pytest.raises(DataError, match="toy: x_train is no array"):
        to_array([[1, 2], [3]], "x_train", "toy")
