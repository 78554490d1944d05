import json
import pickle
from contextlib import suppress

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from sklearn.base import clone
from torch import nn

from concont import PartialLabelClassifier
from concont.estimator.trained import KEY, seal

ROWS = np.random.RandomState(0).randn(30, 4) + 6 * np.eye(3, 4)[np.arange(30) % 3]
SETS = [["b"], ["a", "b"], None, ["c"], ["c"]] * 6


class Marker:
    """Leaves a trace where it is unpickled."""

    ran = False

    def __reduce__(self):
        return setattr, (Marker, "ran", True)


@pytest.fixture(scope="module")
def model():
    settings = {"optimizer.lr": np.float64(0.05), "model.width": 8}
    parameters = {"epochs": np.int64(4), "random_state": 3, "device": "cpu", "validation": 0.2}
    return PartialLabelClassifier(settings=settings, **parameters).fit(ROWS, SETS)


@pytest.fixture
def path(model, tmp_path):
    model.save(tmp_path / "model.safetensors")
    return tmp_path / "model.safetensors"


def test_what_is_saved_is_loaded(model, path):
    again = PartialLabelClassifier.load(path, device="cpu")
    assert np.array_equal(again.predict_proba(ROWS), model.predict_proba(ROWS))
    assert np.array_equal(again.labels_, model.labels_)
    assert again.classes_.tolist() == ["a", "b", "c"]
    for name in ("n_features_in_", "history_", "validation_"):
        assert getattr(again, name) == getattr(model, name)
    assert again.get_params() == {**model.get_params(), "epochs": 4}
    with pytest.raises(ValueError, match="features"):
        again.predict(ROWS[:, :3])


@pytest.mark.parametrize("labels", [[3, 7, 9], [1.0, 2.5e9, 4.0], [False, True, True]])
def test_classes_keep_their_kind(tmp_path, labels):
    y = np.array(labels)[np.arange(30) % 3]
    model = PartialLabelClassifier(epochs=1, random_state=0, device="cpu").fit(ROWS, y)
    model.save(tmp_path / "model.safetensors")
    again = PartialLabelClassifier.load(tmp_path / "model.safetensors")
    assert again.predict(ROWS).dtype == model.predict(ROWS).dtype == y.dtype


@pytest.mark.parametrize("kind", [np.int8, np.uint64, np.float64])
def test_numbers_keep_their_type(tmp_path, kind):
    y = np.array([3, 7, 9], dtype=kind)[np.arange(30) % 3]
    model = PartialLabelClassifier(epochs=1, random_state=0, device="cpu").fit(ROWS, y)
    model.save(tmp_path / "model.safetensors")
    again = PartialLabelClassifier.load(tmp_path / "model.safetensors")
    assert again.classes_.dtype == again.labels_.dtype == model.classes_.dtype == kind


@pytest.mark.parametrize(
    "labels", [[b"a", b"b", b"c"], np.array(["2020-01-01", "2020-01-02", "2020-01-03"], "M8[D]")]
)
def test_classes_that_json_does_not_know_are_not_saved(tmp_path, labels):
    y = np.array(labels)[np.arange(30) % 3]
    model = PartialLabelClassifier(epochs=1, random_state=0, device="cpu").fit(ROWS, y)
    with pytest.raises(ValueError, match="classes of type (bytes|date) go into no such file"):
        model.save(tmp_path / "model.safetensors")
    assert not (tmp_path / "model.safetensors").exists()
    assert np.array_equal(pickle.loads(pickle.dumps(model)).classes_, model.classes_)


def test_a_pickle_holds_nothing_of_a_device(model):
    state = model.__getstate__()
    assert state["_live"] is None
    assert not any("torch" in type(each).__module__ for each in state["_trained"].weights.values())
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict_proba(ROWS), model.predict_proba(ROWS))
    assert pickle.loads(pickle.dumps(PartialLabelClassifier())).get_params()["epochs"] is None


def test_a_file_is_replaced_only_if_asked(model, path):
    before = path.read_bytes()
    with pytest.raises(ValueError, match="overwrite=True replaces it"):
        model.save(path)
    model.save(path, overwrite=True)
    assert path.read_bytes() == before


def test_an_own_network_is_given_again(tmp_path):
    network = nn.Sequential(nn.Linear(4, 12), nn.ReLU())
    model = PartialLabelClassifier(network=network, epochs=2, random_state=0, device="cpu")
    model.fit(ROWS, SETS).save(tmp_path / "model.safetensors")
    other = nn.Sequential(nn.Linear(4, 12), nn.ReLU())
    again = PartialLabelClassifier.load(tmp_path / "model.safetensors", network=other)
    assert np.array_equal(again.predict_proba(ROWS), model.predict_proba(ROWS))
    with pytest.raises(ValueError, match="a network of your own"):
        PartialLabelClassifier.load(tmp_path / "model.safetensors")


def change(path, tensors=lambda t: t, text=lambda c: json.dumps(c)):
    """As somebody would who knows how the file is sealed."""
    said = json.loads(read_metadata(path)[KEY].partition(" ")[2])
    changed = tensors(load_file(path))
    save_file(changed, path, {KEY: seal(text(said), changed)})


def read_metadata(path):
    from safetensors import safe_open

    with safe_open(path, framework="numpy") as file:
        return file.metadata()


def spoil(name, value):
    def put(tensors):
        tensors[name] = np.full_like(tensors[name], value)
        return tensors

    return put


def without(*names):
    def leave_out(content):
        inner = content
        for name in names[:-1]:
            inner = inner[name]
        del inner[names[-1]]
        return json.dumps(content)

    return leave_out


def put_in(value, *names):
    def put(content):
        inner = content
        for name in names[:-1]:
            inner = inner[name]
        inner[names[-1]] = value
        return json.dumps(content)

    return put


SPOILT = {
    "not finite": lambda p: change(p, spoil("weights.online.classifier.bias", np.nan)),
    "was not written by `save`": lambda p: save_file(load_file(p), p),
    "is damaged": lambda p: p.write_bytes(p.read_bytes()[:-50]),
    "damaged: .*header": lambda p: p.write_bytes(pickle.dumps(Marker())),
    "damaged: Expecting": lambda p: change(p, text=lambda c: "nothing"),
    "damaged: .*recursion": lambda p: change(p, text=lambda c: "[" * 100_000),
    "damaged: 'settings'": lambda p: change(p, text=without("settings")),
    "damaged: data is no dict": lambda p: change(p, text=put_in([], "data")),
    "damaged: .*shape": lambda p: change(p, text=without("data", "shape")),
    "damaged: .*classes are no list": lambda p: change(
        p, text=put_in([["a"]] * 3, "more", "classes")
    ),
    "damaged: TypeError": lambda p: change(p, text=put_in("nosuch", "more", "type")),
    "damaged: KeyError": lambda p: change(p, text=without("more", "params", "epochs")),
    "damaged: IndexError": lambda p: change(p, spoil("more.labels", 10**6)),
    "width": lambda p: change(p, text=put_in(10**9, "settings", "model", "width")),
    "the run holds no network": lambda p: change(p, text=put_in(9, "settings", "model", "width")),
    "is run only if you name it": lambda p: change(
        p, text=put_in("planted.py:make", "settings", "model", "own")
    ),
    "names other classes": lambda p: change(p, text=put_in(["c", "b", "a"], "more", "classes")),
    "no such file": lambda p: p.unlink(),
}


def flip_a_bit(path, place):
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("part", range(1, 20))
def test_a_flipped_bit_is_found(path, part):
    flip_a_bit(path, path.stat().st_size * part // 20)
    with pytest.raises(ValueError, match="is damaged|was not written"):
        PartialLabelClassifier.load(path)


def test_classes_that_changed_places_are_found(path):
    content = path.read_bytes()
    names = json.dumps(json.dumps(["a", "b", "c"])).strip('"').encode()
    assert content.count(names) == 2
    path.write_bytes(content.replace(names, names.replace(b"a", b"_").replace(b"c", b"a")))
    with pytest.raises(ValueError, match="does not fit its checksum"):
        PartialLabelClassifier.load(path)


@pytest.mark.parametrize(
    "params",
    [
        {"method": "{file}:make"},
        {"settings": {"method.name": "{file}:make"}},
        {"settings": {"method": {"name": "{file}:make"}, "train.epochs": 1}},
        {"settings": {"model.own": "{file}:make"}},
        {"settings": {"model": {"own": "{file}:make"}}},
    ],
)
def test_code_that_a_file_names_is_never_run(path, tmp_path, params):
    """Neither when it is loaded, nor when what was loaded, or a clone of it, is fitted anew."""
    mark, file = tmp_path / "mark", tmp_path / "planted.py"
    file.write_text(
        f"import os, torch\nos.mkdir({str(mark)!r})\ndef make(): return torch.nn.Flatten()\n"
    )
    named = json.loads(json.dumps(params).replace("{file}", str(file)))
    change(path, text=lambda c: put_in({**c["more"]["params"], **named}, "more", "params")(c))
    again = PartialLabelClassifier.load(path, device="cpu")
    again.predict(ROWS)
    for each in (again, clone(again)):
        with suppress(ValueError):
            each.fit(ROWS, SETS)
    assert not mark.exists()
    with suppress(ValueError):  # by the user's own word it is
        again.set_params(method=f"{file}:make").fit(ROWS, SETS)
    assert mark.exists()


@pytest.mark.parametrize("message", SPOILT)
def test_a_file_that_is_not_what_was_saved_is_refused(path, message):
    SPOILT[message](path)
    with pytest.raises(ValueError, match=message) as caught:
        PartialLabelClassifier.load(path)
    assert "\n" not in str(caught.value)
    assert not Marker.ran
