import numpy as np
import pytest

from concont.data.sources import digits, from_arrays, load, read_npz
from concont.errors import ConcontError, DataError, UsageError


def test_digits_are_the_bundled_ones_in_a_fixed_split():
    data = digits()
    assert data.x_train.shape == (1437, 8, 8, 1)
    assert data.x_test.shape == (360, 8, 8, 1)
    assert data.x_train.dtype == np.uint8
    assert (data.x_train.min(), data.x_train.max()) == (0, 255)
    assert len(data.classes) == 10
    assert data.digest == digits().digest
    counts = np.bincount(data.y_test)
    assert counts.min() >= 34  # every class is tested


def test_a_file_gives_back_its_arrays(toy_npz, toy_arrays):
    data = load(str(toy_npz))
    assert np.array_equal(data.x_train[..., 0], toy_arrays["x_train"])
    assert np.array_equal(data.y_test, toy_arrays["y_test"])
    assert data.candidates is None
    assert data.classes == ("0", "1")
    assert data.digest == from_arrays(toy_arrays).digest


def test_the_digest_is_of_the_content(toy_arrays):
    changed = {**toy_arrays, "x_train": toy_arrays["x_train"].copy()}
    changed["x_train"][0, 0, 0] ^= 1
    assert from_arrays(changed).digest != from_arrays(toy_arrays).digest


def test_candidate_sets_alone_are_enough(toy_arrays):
    sets = np.ones((40, 3), dtype=bool)
    data = from_arrays(
        {"x_train": toy_arrays["x_train"], "candidates": sets, "classes": list("abc")}
    )
    assert data.classes == ("a", "b", "c")
    assert (data.y_train == -1).all()
    assert data.x_test is None


def change(**changes):
    return lambda arrays: {k: v for k, v in {**arrays, **changes}.items() if v is not None}


def sets(rows=40, classes=2, empty=None):
    made = np.ones((rows, classes), dtype=bool)
    if empty is not None:
        made[empty] = False
    return made


labels = np.arange(40) % 2
MISTAKES = {
    "no images": (change(x_train=None), "no x_train"),
    "no labels": (change(y_train=None), "neither y_train nor candidates"),
    "float images": (change(x_train=np.zeros((40, 8, 8))), "x_train is float64 of shape"),
    "image shape": (change(x_train=np.zeros((40, 8, 8, 4), np.uint8)), r"\(40, 8, 8, 4\)"),
    "whole features": (change(x_train=np.ones((40, 8), int)), r"it must be floats, N x D \("),
    "no rows": (change(x_train=np.zeros((0, 8, 8), np.uint8)), "no image in it"),
    "lengths": (change(y_train=labels[:39]), "y_train has 39 rows, its images 40"),
    "float labels": (change(y_train=labels.astype(float)), "it must be N integers"),
    "NaN label": (change(y_train=np.where(labels == 0, np.nan, 1)), "y_train has NaN in row 0"),
    "label too high": (
        change(candidates=sets(), y_train=np.where(np.arange(40) == 7, 5, labels)),
        "y_train row 7 is 5; it must be 0 to 1",
    ),
    "label too low": (change(y_train=np.where(np.arange(40) == 7, -2, labels)), "row 7 is -2"),
    "empty set": (change(candidates=sets(empty=17)), "candidates row 17 is empty"),
    "set lengths": (change(candidates=sets(39)), "candidates has 39 rows, x_train 40"),
    "set type": (change(candidates=sets().astype(int)), "it must be N x C bool"),
    "half a test set": (change(y_test=None), "x_test and y_test go together"),
    "test size": (change(x_test=np.zeros((20, 9, 9), np.uint8)), "x_test holds"),
    "unknown test label": (change(y_test=np.full(20, -1)), "y_test row 0 has no label"),
    "one class": (change(y_train=np.zeros(40, int), y_test=np.zeros(20, int)), "1 class"),
    "misspelt": (
        change(x_test=None, y_test=None, X_test=labels),
        "unknown array X_test; did you mean",
    ),
    "masked": (change(y_train=np.ma.array(labels, mask=labels == 1)), "y_train is masked in 20"),
    "stray label": (
        change(y_train=np.where(np.arange(40) == 7, 255, labels)),
        "y_train row 7 is 255, which makes 256 classes, 253 of them without an image",
    ),
    "same names": (change(classes=np.array(["a", "a"])), "both called 'a'"),
    "names": (change(candidates=sets(), classes=np.array(["a"])), "1 names in classes, 2 columns"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_bad_arrays_are_refused_by_name(mistake, toy_arrays):
    spoil, message = MISTAKES[mistake]
    with pytest.raises(DataError, match=message):
        from_arrays(spoil(toy_arrays), "toy.npz")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"not a zip archive at all", "toy.npz"),
        (None, "no such file"),
    ],
)
def test_bad_files_are_refused(tmp_path, content, message):
    path = tmp_path / "toy.npz"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConcontError, match=message):
        read_npz(path)


def test_a_truncated_file_is_refused(toy_npz):
    toy_npz.write_bytes(toy_npz.read_bytes()[:-500])
    with pytest.raises(DataError, match="cut short"):
        read_npz(toy_npz)


def test_objects_are_never_unpickled(tmp_path):
    path = tmp_path / "objects.npz"
    np.savez(path, x_train=np.array([{"a": 1}], dtype=object))
    with pytest.raises(DataError, match="Python objects"):
        read_npz(path)


def test_a_single_array_is_not_an_archive(tmp_path):
    path = tmp_path / "array.npz"
    with open(path, "wb") as file:
        np.save(file, np.zeros(3))
    with pytest.raises(DataError, match="not an .npz file"):
        read_npz(path)


def test_an_unknown_name_is_refused_with_those_that_are_known():
    with pytest.raises(UsageError, match="no data source 'mnist'; give one of digits"):
        load("mnist")


def test_damage_inside_an_archive_is_refused(toy_npz):
    content = bytearray(toy_npz.read_bytes())
    content[200:300] = bytes(100)
    toy_npz.write_bytes(bytes(content))
    with pytest.raises(DataError, match="damaged or cut short"):
        read_npz(toy_npz)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (float("nan"), "class 0 is nan, and is no finite number"),
        (float("inf"), "class 0 is inf, and is no finite number"),
        (-1.0, "class 0 is -1, and is negative"),
        (1e308, r"class 0 is 1e\+308, and is more than 1e\+15"),  # infinite in float32
        (5e-324, "class 0 is 4.9.*e-324, and is less than 1e-15, yet not 0"),  # 0 in float32
    ],
)
def test_votes_that_are_no_counts_are_refused_by_row(toy_arrays, weight, message):
    sets = np.ones((40, 2), dtype=bool)
    weights = np.ones((40, 2))
    weights[3, 0] = weight
    arrays = {"x_train": toy_arrays["x_train"], "candidates": sets, "candidate_weights": weights}
    with pytest.raises(DataError, match=f"candidate_weights row 3, {message}"):
        from_arrays(arrays)
