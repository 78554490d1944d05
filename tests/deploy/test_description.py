import json

import pytest

from concont.deploy.description import read_description
from concont.errors import DataError
from exports import TEXTS, with_text


def test_what_is_written_is_read_back():
    found = read_description(TEXTS, "x.onnx")
    assert found.as_texts() == TEXTS
    assert found.classes == ("a", "b")
    assert found.shape == (8, 8, 1)


@pytest.mark.parametrize("name", TEXTS)
def test_what_is_missing_is_named(name):
    texts = {key: value for key, value in TEXTS.items() if key != name}
    with pytest.raises(DataError, match=rf"x.onnx says nothing of its {name}"):
        read_description(texts, "x.onnx")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("classes", value) for value in (["a"], "ab", [1, 2], {"a": 1}, None, ["a", "\ud800"])),
        *(("height", value) for value in (0, -3, 8.0, True, "8", 2**20)),
        *(("channels", value) for value in (2, "1", [1])),
        *(("fit", value) for value in ("squeeze", None, ["crop"])),
        *(("model", value) for value in (None, [])),
        ("commit", 3),
        ("licence", 3),
        ("concont", None),
    ],
)
def test_what_cannot_be_is_refused(name, value):
    with pytest.raises(DataError, match=rf"its {name} cannot be what it says"):
        read_description(with_text(name, value), "x.onnx")


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000])
def test_damaged_texts_are_refused(text):
    with pytest.raises(DataError, match="is damaged"):
        read_description({**TEXTS, "classes": text}, "x.onnx")


def texts_of_features(**other):
    sizes = {"height": None, "width": None, "channels": None, "features": 12, **other}
    return TEXTS | {name: json.dumps(value) for name, value in sizes.items()}


def test_a_file_may_take_features_in_place_of_images():
    found = read_description(texts_of_features(), "x.onnx")
    assert (found.shape, found.goes_in) == ((12,), "features")
    assert found.as_texts() == texts_of_features()
    images = read_description(TEXTS, "x.onnx")
    assert (images.goes_in, images.features) == ("images", None)


@pytest.mark.parametrize(
    "other",
    [{"features": 0}, {"features": "12"}, {"features": 2**30}, {"height": 8}, {"channels": 1}],
)
def test_features_that_cannot_be_are_refused(other):
    (name,) = other
    with pytest.raises(DataError, match=rf"its {name} cannot be what it says"):
        read_description(texts_of_features(**other), "x.onnx")
