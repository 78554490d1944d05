import json
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from safetensors import safe_open

import concont
from concont.deploy.description import read_description
from concont.deploy.formats import FORMATS, describe_run, make_deployable
from concont.errors import UsageError
from exports import CLASSES, toy_arrays, train_toy
from pictures import noise


@pytest.fixture
def written(run, tmp_path):
    def write(form):
        path = tmp_path / form
        FORMATS[form].write(make_deployable(run), describe_run(run, "MIT"), path)
        return path

    return write


def test_scaling_and_normalisation_are_inside(run):
    images = toy_arrays()["x_test"]
    logits, probs = make_deployable(run).compute(images)
    assert np.abs(probs - run.predict_proba(images)).max() < 1e-6
    assert np.allclose(probs, torch.from_numpy(logits).softmax(dim=1).numpy(), atol=1e-6)


def test_the_run_stays_as_it_was(run):
    network = run.predictor.networks["online"]
    before = {name: weight.clone() for name, weight in network.state_dict().items()}
    make_deployable(run).network.classifier.weight.data.zero_()
    assert all(torch.equal(network.state_dict()[name], weight) for name, weight in before.items())


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("size", [1, 2, 7])
def test_every_format_answers_as_the_network_at_any_batch_size(run, written, form, size):
    module = make_deployable(run)
    found = FORMATS[form].reopen(written(form), module)(noise(size, 8, 8, 3))
    for one, other in zip(found, module.compute(noise(size, 8, 8, 3)), strict=True):
        assert one.shape == (size, 3)
        assert np.abs(one - other).max() < 1e-4


def test_an_onnx_file_names_its_ports_and_describes_itself(run, written):
    model = onnx.load(written("onnx"))
    onnx.checker.check_model(model, full_check=True)
    (images,) = model.graph.input
    sides = [dim.dim_param or dim.dim_value for dim in images.type.tensor_type.shape.dim]
    assert (images.name, sides) == ("images", ["batch", 8, 8, 3])
    assert [answer.name for answer in model.graph.output] == ["logits", "probabilities"]
    texts = {prop.key: prop.value for prop in model.metadata_props}
    assert json.loads(texts["classes"]) == list(CLASSES)
    assert read_description(texts, "") == describe_run(run, "MIT")
    assert json.loads(texts["settings_hash"]) == run.summary.settings_hash
    assert json.loads(texts["data_digest"]) == run.data["digest"]
    assert json.loads(texts["licence"]) == "MIT"


def test_no_path_of_this_machine_is_in_a_file(run, written):
    for form in FORMATS:
        content = written(form).read_bytes()
        for path in (concont.__file__, torch.__file__, str(run.path)):
            folder = path.rpartition("/")[0].encode()
            assert folder not in content, (form, folder)


def test_no_path_of_the_run_that_it_began_from_is_in_a_file(continued, tmp_path):
    description = describe_run(continued, None)
    for form in FORMATS:
        path = tmp_path / form
        FORMATS[form].write(make_deployable(continued), description, path)
        assert str(continued.path.parents[1]).encode() not in path.read_bytes(), form
    assert "start" not in description.model
    assert description.model["start_digest"] == continued.settings.model.start_digest


def test_torchscript_says_the_same_of_itself(run, written, recwarn):
    extra = {"concont.json": ""}
    with pytest.warns(FutureWarning):
        torch.jit.load(written("torchscript"), _extra_files=extra)
    assert read_description(json.loads(extra["concont.json"]), "") == describe_run(run, "MIT")


def test_safetensors_hold_the_online_network_alone(run, written):
    with safe_open(written("safetensors"), framework="np") as file:
        weights = run.predictor.networks["online"].state_dict()
        assert set(file.keys()) == set(weights)
        assert all(np.array_equal(file.get_tensor(name), weights[name]) for name in weights)
        found = read_description(file.metadata(), "")
    assert found == describe_run(run, "MIT")
    assert found.normalisation == run.data["normalisation"]


NETWORKS = {
    "narrow": ({"name": "narrow-resnet18", "width": 4}, 8),
    "resnet18": ({"name": "resnet18"}, 8),
    "large stem": ({"name": "narrow-resnet18", "width": 4, "stem": "quarter"}, 32),
    "timm": ({"name": "timm:resnet10t"}, 32),
    "timm attention": ({"name": "timm:vit_tiny_patch16_224"}, 32),
}


QUICK = ("narrow", "large stem", "timm")


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name in QUICK else pytest.mark.long) for name in NETWORKS],
)
def test_every_kind_of_network_is_exported(name, tmp_path):
    model, side = NETWORKS[name]
    data = toy_arrays(side=side)
    run = train_toy(tmp_path, {**model, "hidden": 8, "embedding": 8}, data, train={"epochs": 1})
    module, description = make_deployable(run), describe_run(run, None)
    images = data["x_test"][:7]
    for form, each in FORMATS.items():
        each.write(module, description, tmp_path / form)
        compute = each.reopen(tmp_path / form, module)
        for size in (1, 2, 7):
            gap = np.abs(compute(images[:size])[1] - module.compute(images[:size])[1]).max()
            assert gap < 1e-4, (form, size)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has a device that is full")
@pytest.mark.parametrize("form", FORMATS)
def test_a_full_disk_is_an_error_of_the_system_whatever_writes(run, form):
    """The libraries' own errors of that would end in a traceback."""
    module, description = make_deployable(run), describe_run(run, None)
    with pytest.raises(OSError, match="No space left on device"):
        FORMATS[form].write(module, description, Path("/dev/full"))


def test_a_method_without_a_network_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    run = concont.train({"method": {"name": "sspl"}}, data=toy_arrays(), out=tmp_path / "run")
    with pytest.raises(UsageError, match="sspl trains no network, so there is nothing to export"):
        make_deployable(run)
