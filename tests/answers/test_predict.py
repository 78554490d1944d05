import csv
import io
import json

import numpy as np
import pytest

import concont
from concont.answers import predict as module
from concont.answers.predict import (
    Prediction,
    Skipped,
    predict_files,
    write_csv,
    write_jsonl,
)
from concont.errors import UsageError
from concont.images.files import read_image
from pictures import noise, vast_png

COLOUR = (8, 8, 3)


@pytest.fixture
def run(tmp_path, toy_arrays, toy_config):
    toy_config["train"]["epochs"] = 1
    arrays = {**toy_arrays, "classes": np.array(["left", "right"])}
    return concont.train(toy_config, data=arrays, out=tmp_path / "run")


@pytest.fixture
def colour_run(tmp_path, toy_arrays, toy_config):
    """Three classes of colour images."""
    toy_config["train"]["epochs"] = 1
    images = np.random.RandomState(1).randint(0, 256, (40, *COLOUR)).astype(np.uint8)
    arrays = {"x_train": images, "y_train": np.arange(40) % 3}
    return concont.train(toy_config, data=arrays, out=tmp_path / "colour")


def test_saved_images_are_predicted_as_their_arrays(run, save, toy_arrays):
    images = toy_arrays["x_test"]
    paths = [save(f"{k}.png", image) for k, image in enumerate(images)]
    probs = run.predict_proba(images)
    results = list(predict_files(run, paths, top=2))
    assert [result.image for result in results] == paths
    names = np.array(["left", "right"])
    assert [result.top[0][0] for result in results] == names[probs.argmax(axis=1)].tolist()
    got = [dict(result.top) for result in results]
    assert [row["left"] for row in got] == pytest.approx(probs[:, 0].tolist(), abs=1e-6)
    assert [row["right"] for row in got] == pytest.approx(probs[:, 1].tolist(), abs=1e-6)


def test_the_likeliest_classes_come_first(colour_run, save):
    images = noise(9, *COLOUR)
    paths = [save(f"{k}.png", image) for k, image in enumerate(images)]
    whole = [result.top for result in predict_files(colour_run, paths, top=3)]
    probs = colour_run.predict_proba(images)
    for top, row in zip(whole, probs, strict=True):
        assert [label for label, _ in top] == [str(k) for k in np.argsort(-row)]
        assert [prob for _, prob in top] == pytest.approx(sorted(row, reverse=True), abs=1e-6)
        assert sum(prob for _, prob in top) == pytest.approx(1, abs=1e-5)
    assert [result.top for result in predict_files(colour_run, paths, top=2)] == [
        t[:2] for t in whole
    ]
    assert [result.top for result in predict_files(colour_run, paths)] == [t[:1] for t in whole]


@pytest.mark.parametrize("top", [0, 3])
def test_top_is_at_most_the_number_of_classes(run, top):
    with pytest.raises(UsageError, match=f"top is {top}; it must be 1 to 2"):
        predict_files(run, [], top)


@pytest.mark.parametrize(("limit", "value"), [("AT_ONCE", 3), ("PIXELS", 200)])
def test_images_are_predicted_a_batch_at_a_time(run, save, toy_arrays, monkeypatch, limit, value):
    paths = [save(f"{k}.png", image) for k, image in enumerate(toy_arrays["x_test"][:7])]
    paths.insert(4, paths[0].with_name("none.png"))
    single = [next(predict_files(run, [path], top=2)) for path in paths]
    sizes = []
    own = type(run).predict_proba

    def counted(self, images):
        sizes.append(len(images))
        return own(self, images)

    monkeypatch.setattr(type(run), "predict_proba", counted)
    monkeypatch.setattr(module, limit, value)
    results = {result.image: result for result in predict_files(run, paths, top=2)}
    assert sizes == [3, 2, 2]
    assert results[paths[4]] == single[4] == Skipped(paths[4], "No such file or directory")
    for one in single[:4] + single[5:]:
        assert dict(results[one.image].top) == pytest.approx(dict(one.top), abs=1e-6)


def test_an_image_larger_than_a_batch_is_predicted_alone(run, save, monkeypatch):
    monkeypatch.setattr(module, "PIXELS", 10)
    paths = [save(f"{k}.png", noise(8, 8, seed=k)) for k in range(2)]
    assert [result.image for result in predict_files(run, paths)] == paths


def test_files_are_fitted_as_the_run_states(run, save, monkeypatch):
    wide = save("wide.png", np.hstack([noise(8, 8, seed=k) for k in range(3)]))
    fits = {fit: read_image(wide, (8, 8), 1, fit) for fit in ("crop", "pad", "stretch")}
    stated = {}
    for fit, pixels in fits.items():
        monkeypatch.setitem(run.data, "fit", fit)
        (got,) = predict_files(run, [wide], top=2)
        stated[fit] = dict(got.top)
        assert stated[fit]["left"] == pytest.approx(run.predict_proba(pixels[None])[0, 0], abs=1e-6)
    monkeypatch.delitem(run.data, "fit")
    (got,) = predict_files(run, [wide], top=2)
    assert dict(got.top) == stated["stretch"] != stated["crop"]


@pytest.mark.parametrize("method", ["sspl", "parm"])
def test_a_method_without_probabilities_gives_labels(
    method, tmp_path, save, toy_arrays, toy_config, monkeypatch
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    config = {"data": toy_config["data"], "method": {"name": method}}
    arrays = {**toy_arrays, "classes": np.array(["left", "right"])}
    run = concont.train(config, data=arrays, out=tmp_path / "run")
    paths = [save(f"{k}.png", image) for k, image in enumerate(toy_arrays["x_test"])]
    results = list(predict_files(run, paths))
    names = [("left", "right")[k] for k in run.predict(toy_arrays["x_test"])]
    assert [result.top for result in results] == [((name, None),) for name in names]
    with pytest.raises(UsageError, match="gives a label alone, so it must be 1"):
        predict_files(run, paths, top=2)
    file = io.StringIO()
    write_csv(results[:1], file, 1)
    assert file.getvalue().splitlines()[1] == f"{paths[0]},{names[0]},"
    file = io.StringIO()
    write_jsonl(results[:1], file, 1)
    assert json.loads(file.getvalue())["probability"] is None


def test_a_run_on_rows_of_features_labels_no_files(tmp_path, save):
    rows = {"x_train": np.random.RandomState(0).rand(40, 5), "y_train": np.arange(40) % 2}
    run = concont.train({"method": {"name": "sspl"}}, data=rows, out=tmp_path / "run")
    with pytest.raises(UsageError, match="learned from rows of features"):
        predict_files(run, [save("image.png", noise(8, 8))])


def test_what_cannot_be_read_is_skipped_with_a_reason(run, save, tmp_path):
    good = save("good.png", noise(8, 8))
    text, empty, cut, bomb, vast = (
        tmp_path / "images" / f"{name}.png" for name in ("text", "empty", "cut", "bomb", "vast")
    )
    text.write_text("this is no image")
    empty.touch()
    cut.write_bytes(good.read_bytes()[:-30])
    bomb.write_bytes(vast_png(60_000, 60_000))
    vast.write_bytes(vast_png(10_000, 10_000))  # Pillow only warns of this one
    floats = save("floats.tiff", noise(8, 8).astype(np.float32))
    program = save("program.eps", noise(8, 8))
    missing = tmp_path / "missing.png"
    paths = [text, empty, cut, good, bomb, vast, floats, program, missing]
    results = list(predict_files(run, paths))
    reasons = {result.image: result.reason for result in results if isinstance(result, Skipped)}
    assert [result.image for result in results if isinstance(result, Prediction)] == [good]
    assert set(reasons) == set(paths) - {good}
    assert {reasons[path] for path in (text, program)} == {"not an image that can be read"}
    assert reasons[empty] == "the file is empty"
    assert "truncated" in reasons[cut]
    assert "decompression bomb" in reasons[bomb]
    assert "decompression bomb" in reasons[vast]
    assert "mode F" in reasons[floats]
    assert reasons[missing] == "No such file or directory"
    assert not any("\n" in reason for reason in reasons.values())


PREDICTIONS = [
    Prediction("one.png", (("a, b", 0.98765432), ("c", 0.01234567), ("d", 1.23456789e-8))),
    Prediction("two\n.png", (("c", 1 / 3), ("d", 1 / 3), ("a, b", 1 / 3))),
]


def test_csv_has_a_column_pair_a_class():
    file = io.StringIO(newline="")
    write_csv(PREDICTIONS, file, 3)
    assert file.getvalue().splitlines()[0] == (
        "image,label,probability,label_2,probability_2,label_3,probability_3"
    )
    file.seek(0)
    assert list(csv.reader(file))[1:] == [
        ["one.png", "a, b", "0.987654", "c", "0.0123457", "d", "1.23457e-08"],
        ["two\n.png", "c", "0.333333", "d", "0.333333", "a, b", "0.333333"],
    ]
    file = io.StringIO()
    write_csv([Prediction("one.png", (("a", 0.75),))], file, 1)
    assert file.getvalue() == "image,label,probability\none.png,a,0.75\n"


def test_json_lines_hold_the_first_class_and_all():
    file = io.StringIO()
    write_jsonl(PREDICTIONS, file, 3)
    first, second = map(json.loads, file.getvalue().splitlines())
    assert first == {
        "image": "one.png",
        "label": "a, b",
        "probability": 0.987654,
        "top": [
            {"label": "a, b", "probability": 0.987654},
            {"label": "c", "probability": 0.0123457},
            {"label": "d", "probability": 1.23457e-08},
        ],
    }
    assert (second["image"], second["label"]) == ("two\n.png", "c")


def test_names_are_no_formulas_in_csv_and_themselves_in_json():
    predictions = [Prediction("=x.png", (("@a", 0.75), ("-1", 0.25)))]
    sheet, lines = io.StringIO(), io.StringIO()
    write_csv(predictions, sheet, 2)
    write_jsonl(predictions, lines, 2)
    assert sheet.getvalue().splitlines()[1] == "'=x.png,'@a,0.75,-1,0.25"
    said = json.loads(lines.getvalue())
    assert (said["image"], [each["label"] for each in said["top"]]) == ("=x.png", ["@a", "-1"])
