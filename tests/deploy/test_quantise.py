import numpy as np
import onnx
import pytest

from concont.deploy.export import export_run
from concont.deploy.onnx_model import load_onnx
from concont.deploy.quantise import measure, quantise
from concont.errors import UsageError
from exports import toy_arrays, train_toy

NETWORK = {"name": "small", "width": 16, "hidden": 8, "embedding": 8}


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    """A run whose weights are most of its file."""
    return train_toy(tmp_path_factory.mktemp("wide"), NETWORK)


@pytest.fixture(scope="module")
def both(wide, tmp_path_factory):
    """The float file, the 8-bit one, and what was found."""
    folder = tmp_path_factory.mktemp("int8")
    plain = export_run(wide, folder / "float.onnx")
    problem = wide.read_problem()
    count = quantise(plain.path, folder / "int8.onnx", problem.images)
    return (
        plain.path,
        folder / "int8.onnx",
        measure(plain.path, folder / "int8.onnx", problem, count),
    )


def test_it_is_smaller_and_nearly_the_same(wide, both):
    plain, int8, found = both
    model, images = load_onnx(int8), toy_arrays()["x_test"]
    assert model.description == load_onnx(plain).description
    gap = np.abs(model.predict_proba(images) - wide.predict_proba(images)).max()
    assert 0 < gap < 0.1
    assert int8.stat().st_size < 0.6 * plain.stat().st_size
    assert (found.bytes_float, found.bytes_int8) == (plain.stat().st_size, int8.stat().st_size)
    assert (found.calibrated_on, found.measured_on, found.kind) == (90, 30, "test")


def test_the_last_layer_stays_as_it_is(both):
    graph = onnx.load(both[1]).graph
    kinds = [node.op_type for node in graph.node]
    assert kinds.count("QuantizeLinear") > 5
    last = next(node for node in graph.node if "logits" in node.output)
    floats = {each.name for each in graph.initializer if each.data_type == onnx.TensorProto.FLOAT}
    assert set(last.input[1:]) <= floats


def test_what_both_say_is_counted_against_the_truth(both, tmp_path):
    plain, int8, found = both
    arrays = toy_arrays()
    labels = [load_onnx(path).predict(arrays["x_test"]) for path in (plain, int8)]
    shares = [np.mean(each == arrays["y_test"]) for each in labels]
    assert [found.accuracy_float, found.accuracy_int8] == shares
    assert found.agreement == np.mean(labels[0] == labels[1]) > 0.9


def test_without_a_test_set_labels_are_compared_alone(tmp_path):
    run = train_toy(tmp_path, arrays=toy_arrays(tests=0))
    found = export_run(run, tmp_path / "int8.onnx", int8=True).quantised
    assert (found.kind, found.measured_on) == ("training", 90)
    assert found.accuracy_float is found.accuracy_int8 is None
    assert found.agreement > 0.8
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".onnx"] == ["int8.onnx"]


def test_it_needs_onnx_and_images_to_calibrate_on(tmp_path):
    run = train_toy(tmp_path)
    with pytest.raises(UsageError, match="--int8 is for --format onnx, not for torchscript"):
        export_run(run, tmp_path / "x", "torchscript", int8=True)
    (tmp_path / "toy.npz").unlink()
    with pytest.raises(UsageError, match=r"toy.npz: no such file"):
        export_run(run, tmp_path / "x", int8=True)
    assert not (tmp_path / "x").exists()
