import numpy as np
import pytest
from torch import nn

import concont
from concont.deploy import export as module
from concont.deploy.export import export_run
from concont.deploy.formats import FORMATS, Format
from concont.deploy.onnx_model import load_onnx
from concont.errors import ConcontError
from exports import toy_arrays


def test_what_was_found_is_told(exported):
    assert exported.checked.difference < 1e-4
    assert (exported.checked.images, exported.checked.kind) == (30, "test")
    assert exported.description.licence == "MIT"


def test_a_file_that_answers_otherwise_is_not_kept(run, tmp_path, monkeypatch):
    own = FORMATS["safetensors"]

    def write_noise(model, description, path):
        model.network.classifier.bias.data += 1
        own.write(model, description, path)
        model.network.classifier.bias.data -= 1

    monkeypatch.setitem(FORMATS, "safetensors", Format(write_noise, own.reopen))
    (tmp_path / "model").write_text("old")
    with pytest.raises(ConcontError, match="so it was not kept"):
        export_run(run, tmp_path / "model", "safetensors")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    assert (tmp_path / "model").read_text() == "old"


def test_data_that_cannot_be_read_is_replaced_by_noise(run, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "read_problem_if_there", lambda run: None)
    found = export_run(run, tmp_path / "model", "torchscript")
    assert (found.checked.kind, found.problem) == ("random", None)
    assert np.isfinite(found.checked.difference)


def test_a_network_of_ones_own_is_exported_in_python(tmp_path):
    body = nn.Sequential(nn.Flatten(), nn.Linear(192, 12), nn.ReLU())
    config = {"train": {"epochs": 1, "device": "cpu"}}
    arrays = toy_arrays()
    concont.train(config, data=arrays, model=body, out=tmp_path / "run")
    run = concont.load(tmp_path / "run", model=body)
    found = export_run(run, tmp_path / "model.onnx")
    assert found.checked.kind == "random"  # arrays are not kept
    assert found.description.model == {"name": "a network of the user's own"}
    probs = load_onnx(found.path).predict_proba(arrays["x_test"])
    assert np.abs(probs - run.predict_proba(arrays["x_test"])).max() < 1e-5
