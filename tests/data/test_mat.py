import numpy as np
import pytest
from scipy.io import savemat
from scipy.sparse import csc_matrix

from concont import memory
from concont.data.mat import read_mat, read_mat_shape
from concont.data.sources import load
from concont.errors import DataError, UsageError

ROWS = np.array([[0.5, 2.0], [1.5, -1.0], [3.0, 0.0]])
SETS = np.array([[1, 0, 1], [1, 1, 1], [0, 1, 1], [0, 0, 1]])  # classes x rows; row 2 has all
TRUTH = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 0]])  # row 2 is unknown


def write(folder, **changes):
    content = {"data": ROWS, "partial_target": SETS, "target": TRUTH, **changes}
    path = folder / "made-up.mat"
    savemat(path, {name: value for name, value in content.items() if value is not None})
    return path


@pytest.mark.parametrize(
    "form", [np.uint8, np.float64, csc_matrix], ids=["uint8", "float64", "sparse"]
)
def test_dense_and_sparse_matrices_read_the_same(tmp_path, form):
    made = (lambda a: csc_matrix(a.astype(float))) if form is csc_matrix else form
    arrays = read_mat(write(tmp_path, partial_target=made(SETS), target=made(TRUTH)))
    assert np.array_equal(arrays["x_train"], ROWS)
    assert arrays["candidates"].dtype == np.bool_
    assert np.array_equal(arrays["candidates"], SETS.T == 1)
    assert arrays["y_train"].tolist() == [1, 2, -1]


def test_a_mat_file_is_a_data_source(tmp_path):
    path = write(tmp_path)
    data = load(str(path))
    assert data.x_train.shape == (3, 2)
    assert data.classes == ("0", "1", "2", "3")
    assert data.x_test is None
    other = tmp_path / "copy.mat"
    other.write_bytes(path.read_bytes())
    assert load(str(other)).digest == data.digest  # known by its content


def test_true_labels_are_not_needed(tmp_path):
    assert load(str(write(tmp_path, target=None))).y_train.tolist() == [-1, -1, -1]


def test_a_true_label_outside_its_set_is_read_as_it_is(tmp_path):
    data = load(str(write(tmp_path, target=TRUTH[::-1].copy())))
    assert data.y_train.tolist() == [2, 1, -1]
    assert data.candidates[:2, 2].tolist() == [False, True]


def indexed(row):
    """Sets as a sparse matrix one of whose entries is in that row, which there is not."""
    sparse = csc_matrix(SETS.astype(float))
    sparse.indices[0] = row
    return sparse


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data": None}, "no data in it; found partial_target, target"),
        ({"partial_target": None}, "no partial_target in it; found data, target"),
        ({"partial_target": SETS.T}, r"partial_target is \(3, 4\); it must be classes x rows"),
        ({"target": TRUTH[:2]}, r"target is \(2, 3\), partial_target \(4, 3\)"),
        ({"target": np.ones((4, 3))}, "target column 0 has 4 true labels"),
        ({"partial_target": SETS * 2}, "partial_target must hold 0 and 1 alone"),
        ({"data": "text"}, "data is char of shape"),
        ({"data": np.zeros((2, 3, 4))}, r"data is float64 of shape \(2, 3, 4\), no matrix"),
        ({"data": np.where(ROWS == 1.5, np.nan, ROWS)}, "data row 1 is not finite"),
        ({"data": ROWS[:0]}, r"data is float64 of shape \(0, 2\), no matrix"),
        ({"partial_target": SETS * [1, 0, 1]}, r"partial_target column 1 is empty \(1 such\)"),
        ({"partial_target": indexed(10**6)}, "partial_target is sparse .*indices must be < 4"),
        ({"partial_target": indexed(-5)}, "partial_target is sparse .*indices must be >= 0"),
        ({"target": indexed(10**6)}, "target is sparse and cannot be read"),
        ({"data": csc_matrix((2**31 - 1, 2**21))}, "take 4e.04 TB of memory"),
    ],
)
def test_bad_matrices_are_refused_by_name(tmp_path, changes, message):
    path = write(tmp_path, **changes)
    with pytest.raises(DataError, match=message) as caught:
        load(str(path))
    assert str(path) in str(caught.value)


def test_files_that_matlab_did_not_write_are_refused(tmp_path):
    with pytest.raises(UsageError, match="no such file"):
        read_mat(tmp_path / "missing.mat")
    for name, content in {"text.mat": b"hello", "empty.mat": b""}.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(DataError, match="not a MATLAB file, or cut short"):
            read_mat(tmp_path / name)
    newest = tmp_path / "newest.mat"
    newest.write_bytes(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM" + b"\x89HDF")
    with pytest.raises(DataError, match="save it with `save -v7`"):
        read_mat(newest)
    whole = write(tmp_path).read_bytes()
    (tmp_path / "cut.mat").write_bytes(whole[:-40])
    with pytest.raises(DataError, match="not a MATLAB file, or cut short"):
        read_mat(tmp_path / "cut.mat")


def test_numbers_that_nobody_asked_for_are_not_read(tmp_path, monkeypatch):
    path = write(tmp_path, extra=np.zeros(10**6))
    monkeypatch.setattr(memory, "count_memory", lambda: 10**5)
    assert set(read_mat(path)) == {"x_train", "candidates", "y_train"}


def test_more_numbers_than_there_is_room_for_are_refused_by_their_header(tmp_path, monkeypatch):
    path = write(tmp_path, data=np.zeros((1000, 1000)))
    monkeypatch.setattr(memory, "count_memory", lambda: 10**6)
    with pytest.raises(DataError, match="data and partial_target and target take 8 MB"):
        read_mat(path)


def test_a_sparse_matrix_counts_as_what_it_stands_for(tmp_path):
    path = write(tmp_path, data=csc_matrix((10**7, 10**7)))
    with pytest.raises(DataError, match="take 800 TB of memory"):
        read_mat(path)


@pytest.mark.parametrize("kind", [np.array(["text"]), {"a": 1}, np.array([{}], dtype=object)])
def test_what_is_no_numbers_is_refused_unread(tmp_path, kind):
    with pytest.raises(DataError, match="data is (char|struct|cell) of shape .*, no numbers"):
        read_mat(write(tmp_path, data=kind))


def test_the_shape_of_the_features_is_read_by_itself(tmp_path):
    assert read_mat_shape(write(tmp_path)) == (3, 2)
    with pytest.raises(DataError, match="no MATLAB file with features"):
        read_mat_shape(write(tmp_path, data=None))
