import numpy as np
import pytest

from concont import memory
from concont.data.classes import name_classes, refuse_too_many
from concont.errors import DataError


def name(labels, names=None, columns=None, **more):
    given = None if names is None else np.array(names)
    return name_classes(given, columns, {"y_train": np.array(labels), **more}, "toy")


def test_without_names_they_are_numbered():
    assert name([0, 1, 2, -1]) == ("0", "1", "2")
    assert name([0, 1], y_test=np.array([2])) == ("0", "1", "2")
    assert name([-1, -1], columns=3) == ("0", "1", "2")


def test_names_tell_how_many_there_are():
    assert name([0, 1], ["a", "b", "c"]) == ("a", "b", "c")
    assert name([0], np.array(["ä", "b"]).astype("U").tolist()) == ("ä", "b")
    assert name([0], [b"a", "ä".encode()]) == ("a", "ä")


@pytest.mark.parametrize("stray", [255, 10**9, 2**62])
def test_a_stray_label_is_refused_with_its_row(stray):
    labels = [0, 1, 2, stray, 1]
    with pytest.raises(DataError, match=rf"toy: y_train row 3 is {stray}, which makes .*write -1"):
        name(labels)
    with pytest.raises(DataError, match="y_test row 0 is"):
        name([0, 1, 2], y_test=np.array([stray]))


def test_a_few_classes_without_an_image_are_told(caplog):
    assert len(name([0, 1, 2, 4, 7])) == 8
    assert "toy: no image has the label 3, 5, 6" in caplog.text


def test_named_classes_without_an_image_are_nothing_to_tell(caplog):
    assert len(name([0, 1], list("abcdefgh"))) == 8
    assert not caplog.records


def test_two_classes_of_one_name_are_refused():
    with pytest.raises(DataError, match=r"toy: classes 0 and 2 are both called 'a\\\\x1b'"):
        name([0, 1], ["a\x1b", "b", "a\x1b"])


@pytest.mark.parametrize(
    ("names", "message"),
    [([["a", "b"]], r"is of shape \(1, 2\)"), ([b"\xff", b"a"], "no UTF-8"), (["a"], "1 class")],
)
def test_names_that_are_none_are_refused(names, message):
    with pytest.raises(DataError, match=message):
        name([0, 0], names)


def test_sets_that_do_not_fit_in_memory_are_refused(monkeypatch):
    monkeypatch.setattr(memory, "count_memory", lambda: 10**6)
    refuse_too_many(100, 1000, "toy")
    with pytest.raises(DataError, match=r"toy: candidate sets of 1,000 rows and 1,000 classes"):
        refuse_too_many(1000, 1000, "toy")
