import numpy as np
import onnxruntime as ort
import pytest

from concont.answers.predict import predict_files
from concont.deploy.onnx_model import choose_provider, load_onnx
from concont.errors import DataError, UsageError
from exports import TEXTS, tiny_onnx, toy_arrays, with_text
from pictures import noise


@pytest.fixture(scope="session")
def model(exported):
    return load_onnx(exported.path)


def test_it_answers_as_the_run(run, model):
    images = toy_arrays()["x_test"]
    assert (model.classes, model.shape, model.fit) == (run.classes, run.shape, run.fit)
    assert np.abs(model.predict_proba(images) - run.predict_proba(images)).max() < 1e-5
    assert np.array_equal(model.predict(images), run.predict(images))
    assert len(set(model.predict(images))) == 3


def test_image_files_are_read_as_the_run_reads_them(run, model, save):
    paths = [save(f"{k}.png", noise(9 + 3 * k, 20 - k, 3, seed=k)) for k in range(5)]
    paths.append(save("grey.jpg", noise(30, 12)))
    found, expected = ([*predict_files(each, paths, 3)] for each in (model, run))
    for one, other in zip(found, expected, strict=True):
        assert one.image == other.image
        assert [name for name, _ in one.top] == [name for name, _ in other.top]
        assert [p for _, p in one.top] == pytest.approx([p for _, p in other.top], abs=1e-5)


def refusal(path):
    with pytest.raises(DataError) as caught:
        load_onnx(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_good_file_made_by_hand_is_read(tmp_path):
    model = load_onnx(tiny_onnx(tmp_path / "tiny.onnx"))
    assert model.predict_proba(np.zeros((3, 8, 8, 1), np.uint8)).tolist() == [[0.5, 0.5]] * 3


@pytest.mark.parametrize("content", [b"", b"no model", b"\x08\x0a" * 50])
def test_what_is_no_model_is_refused(tmp_path, content):
    path = tmp_path / "bad\n.onnx"
    path.write_bytes(content)
    assert r"bad\n.onnx is no model that can be read" in refusal(path)


def test_what_a_damaged_model_says_reaches_no_terminal(tmp_path, capfd):
    """ONNX Runtime prints it where it may go on with another processor."""
    path = tiny_onnx(tmp_path / "tiny.onnx")
    content = path.read_bytes().replace(b"Softmax", b"\x1b[31m\xc7x")
    path.write_bytes(content)
    assert "is no model that can be read" in refusal(path)
    assert capfd.readouterr() == ("", "")


def test_a_model_whose_own_words_are_no_text_is_refused(tmp_path):
    path = tiny_onnx(tmp_path / "tiny.onnx")
    path.write_bytes(path.read_bytes().replace(b'"MIT"', b'"M\xd8T"'))
    assert "is damaged" in refusal(path) or "is no model that can be read" in refusal(path)


def test_half_a_model_is_refused(tmp_path, exported):
    path = tmp_path / "half.onnx"
    content = exported.path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    assert "is no model that can be read" in refusal(path)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(UsageError, match="no such file"):
        load_onnx(tmp_path / "none.onnx")
    with pytest.raises(UsageError, match="no such file"):
        load_onnx(tmp_path)


@pytest.mark.parametrize("place", ["weights.bin", "../secret", "/etc/hostname"])
def test_weights_beside_the_file_or_elsewhere_are_not_looked_for(tmp_path, monkeypatch, place):
    (tmp_path / "weights.bin").write_bytes(bytes(4096))
    monkeypatch.chdir(tmp_path)
    path = tiny_onnx(tmp_path / "external.onnx", external=place)
    assert "is no model that can be read" in refusal(path)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({}, "says nothing of its classes; is it from `concont export`?"),
        (with_text("classes", ["a", "b", "c"]), "does not answer with a number for each"),
        (with_text("height", 9), "does not take the images that it says it takes"),
        (with_text("channels", 3), "does not take the images that it says it takes"),
        (with_text("classes", "ab"), "its classes cannot be what it says"),
    ],
)
def test_a_model_that_is_not_what_it_says_is_refused(tmp_path, texts, message):
    assert message in refusal(tiny_onnx(tmp_path / "odd.onnx", texts))


def test_a_model_that_fails_when_it_runs_is_one_line(tmp_path):
    model = load_onnx(tiny_onnx(tmp_path / "tiny.onnx", TEXTS))
    with pytest.raises(DataError, match="the model cannot be run: .*images") as caught:
        model.predict(np.zeros((1, 9, 9, 1), np.uint8))
    assert "\n" not in str(caught.value)


def test_a_device_that_is_not_there_is_refused(monkeypatch):
    monkeypatch.setattr(ort, "get_available_providers", lambda: ["CPUExecutionProvider"])
    assert choose_provider("auto") == choose_provider("cpu") == "CPUExecutionProvider"
    with pytest.raises(UsageError, match="has no CUDA"):
        choose_provider("cuda")
    monkeypatch.setattr(ort, "get_available_providers", lambda: ["CUDAExecutionProvider"])
    assert choose_provider("auto") == choose_provider("cuda") == "CUDAExecutionProvider"
    assert choose_provider("cpu") == "CPUExecutionProvider"
