import re

import numpy as np
import pytest
from scipy.io import savemat

from concont.data.feature_files import read_feature_file
from concont.errors import ConcontError, DataError, UsageError

ROWS = np.random.RandomState(0).randn(5, 3)


def write(folder, form, rows=ROWS):
    path = folder / f"rows{form}"
    if form == ".npy":
        np.save(path, rows)
    elif form == ".npz":
        np.savez(path, x_train=np.zeros((2, 3)), x_test=rows)
    elif form == ".mat":
        savemat(path, {"data": rows})
    else:
        path.write_text("".join(",".join(map(repr, row)) + "\n" for row in rows.tolist()))
    return path


@pytest.mark.parametrize("form", [".npy", ".npz", ".mat", ".csv"])
def test_rows_are_read_from_every_kind_of_file(tmp_path, form):
    assert np.array_equal(read_feature_file(write(tmp_path, form), 3), ROWS)
    with pytest.raises(DataError, match="has 3 features a row; the run learned from 4"):
        read_feature_file(tmp_path / f"rows{form}", 4)
    rows = ROWS.copy()
    rows[3, 1] = np.nan
    with pytest.raises(DataError, match="row 3 is not finite"):
        read_feature_file(write(tmp_path, form, rows), 3)


def test_a_table_may_have_a_header_and_integers_are_numbers(tmp_path):
    path = write(tmp_path, ".csv")
    path.write_text("\ufeffa,b,c\n" + path.read_text())
    assert np.array_equal(read_feature_file(path, 3), ROWS)
    np.save(tmp_path / "whole.npy", np.arange(6).reshape(2, 3))
    assert read_feature_file(tmp_path / "whole.npy", 3).tolist() == [[0, 1, 2], [3, 4, 5]]
    np.savez(tmp_path / "train.npz", x_train=ROWS)
    assert np.array_equal(read_feature_file(tmp_path / "train.npz", 3), ROWS)


@pytest.mark.parametrize(
    ("name", "content", "error", "said"),
    [
        ("one.png", b"", UsageError, "learned from rows of features: give a file of them"),
        ("none.npy", None, UsageError, "no such file"),
        ("empty.npy", b"", DataError, "damaged, or no matrix"),
        ("empty.npz", b"", DataError, "damaged, or no matrix"),
        ("empty.mat", b"", DataError, "not a MATLAB file"),
        ("empty.csv", b"", DataError, "damaged, or no matrix"),
        ("words.csv", b"a,b,c\nx,y,z\n", DataError, "damaged, or no matrix"),
        ("uneven.csv", b"1,2,3\n1,2\n", DataError, "damaged, or no matrix"),
        # A damaged row is no header: without it the numbers of all others would be wrong.
        ("gap.csv", b"1,,3\n4,5,6\n", DataError, "at row 0, column 2"),
        ("word.csv", b"1,2,x\n4,5,6\n", DataError, "at row 0, column 3"),
    ],
)
def test_what_is_no_file_of_features_is_refused(tmp_path, name, content, error, said):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(error, match=re.escape(said)):
        read_feature_file(tmp_path / name, 3)


def test_nothing_is_unpickled_and_other_arrays_are_refused(tmp_path):
    np.save(tmp_path / "objects.npy", np.array([[{}, {}]], dtype=object), allow_pickle=True)
    np.save(tmp_path / "images.npy", np.zeros((2, 8, 8), np.uint8))
    np.savez(tmp_path / "other.npz", rows=ROWS)
    savemat(tmp_path / "other.mat", {"rows": ROWS})
    for name in ("objects.npy", "images.npy", "other.npz", "other.mat"):
        with pytest.raises(ConcontError):
            read_feature_file(tmp_path / name, 3)


def test_a_header_that_counts_columns_is_none_of_the_rows(tmp_path, caplog):
    """As pandas writes it for columns without names."""
    (tmp_path / "rows.csv").write_text("0,1,2\n4,5,6\n")
    assert len(read_feature_file(tmp_path / "rows.csv", 3)) == 1
    assert "its first line, 0, 1, ..., is read as names of columns" in caplog.text
    caplog.clear()
    (tmp_path / "rows.csv").write_text("0,1,3\n4,5,6\n")
    assert len(read_feature_file(tmp_path / "rows.csv", 3)) == 2
    assert not caplog.text
