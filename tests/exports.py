"""Small runs that are exported in tests, and files like theirs that are wrong."""

import json

import numpy as np
import onnx
from onnx import TensorProto, helper

import concont
from concont.deploy.description import Description

CLASSES = ("left", "right|*_<b>", "<script>")
TEXTS = Description(
    classes=("a", "b"),
    height=8,
    width=8,
    channels=1,
    fit="crop",
    normalisation={"mean": [0.5], "std": [0.25]},
    model={"name": "small"},
    concont="0.1.0",
    commit=None,
    settings_hash="0" * 16,
    data_digest="1" * 64,
    licence="MIT",
).as_texts()


def toy_arrays(classes=CLASSES, channels=3, tests=30, side=8):
    """Images whose class is a bright stripe, as an `.npz` holds them."""
    stream = np.random.RandomState(0)
    labels = np.arange(90 + tests) % len(classes)
    images = stream.randint(0, 90, (len(labels), side, side, channels)).astype(np.uint8)
    for k in range(len(classes)):
        images[labels == k, :, 2 * k : 2 * k + 2] += 120
    if channels == 1:
        images = images[..., 0]
    arrays = {"x_train": images[:90], "y_train": labels[:90], "classes": np.array(classes)}
    return arrays | ({"x_test": images[90:], "y_test": labels[90:]} if tests else {})


def train_toy(folder, model=None, arrays=None, **more):
    """A run on such images in a file beside it."""
    np.savez(folder / "toy.npz", **(toy_arrays() if arrays is None else arrays))
    config = {
        "data": {"source": str(folder / "toy.npz"), "labeled": 0.5, "ambiguity": 0.3},
        "model": model or {"name": "small", "width": 4, "hidden": 8, "embedding": 8},
        "views": {"flip": False},
        "method": {"name": "concont", "queue": 32},
        "optimizer": {"lr": 0.05},
        "train": {"epochs": 8, "batch_size": 16, "device": "cpu", "checkpoint_every": 0},
    }
    config = {name: {**section, **more.get(name, {})} for name, section in config.items()}
    return concont.train(config, out=folder / "run")


def tiny_onnx(path, texts=None, shape=(8, 8, 1), classes=2, external=None):
    """A model that gives every image the same answer; texts: what it says of itself."""
    images = helper.make_tensor_value_info("images", TensorProto.UINT8, ["n", *shape])
    answers = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", classes])
        for name in ("logits", "probabilities")
    ]
    zeros = np.zeros((int(np.prod(shape)), classes))
    weights = onnx.numpy_helper.from_array(zeros.astype(np.float32), "weights")
    if external is not None:
        onnx.external_data_helper.set_external_data(weights, external, 0, 4 * zeros.size)
        weights.ClearField("raw_data")
    nodes = [
        helper.make_node("Flatten", ["images"], ["flat"]),
        helper.make_node("Cast", ["flat"], ["numbers"], to=TensorProto.FLOAT),
        helper.make_node("MatMul", ["numbers", "weights"], ["logits"]),
        helper.make_node("Softmax", ["logits"], ["probabilities"]),
    ]
    graph = helper.make_graph(nodes, "tiny", [images], answers, [weights])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    helper.set_model_props(model, TEXTS if texts is None else texts)
    path.write_bytes(model.SerializeToString())
    return path


def with_text(name, value):
    """What a good file says, but for one thing."""
    return {**TEXTS, name: json.dumps(value)}
