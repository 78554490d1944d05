"""Networks of timm, given weights, and a backbone with a rate of its own: whole runs."""

import itertools
import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import concont
from concont.config.resolve import resolve
from concont.data.sources import from_arrays
from concont.errors import DataError, Interrupted, UsageError
from concont.nets.timm_networks import refuse_unknown_model
from concont.runs.folder import RunFolder
from concont.sweep.job import Job
from concont.sweep.record import key_of, of_run
from concont.training.prepare import prepare
from concont.training.trainers import reopen_run

timm = pytest.importorskip("timm")
RESNET, VIT = {"name": "timm:test_resnet"}, {"name": "timm:test_vit"}


@pytest.fixture
def toy_arrays(toy_arrays):
    """Twice as large: a patch of the smallest transformer is 16 pixels wide."""
    return {k: v.repeat(2, 1).repeat(2, 2) if k[0] == "x" else v for k, v in toy_arrays.items()}


def execute(run, stop=lambda: False):
    for _ in run.execute(stop):
        pass
    return run.folder


def start(config, folder, arrays, **sections):
    settings = resolve({**config, **sections})
    return prepare(settings, RunFolder(folder), from_arrays(arrays))


def stop_and_go_on(run, arrays, steps=3, before=lambda: None):
    """The weights at the end of a run that was stopped after some steps."""
    answers = iter([False] * (steps - 1) + [True])
    with pytest.raises(Interrupted):
        execute(run, lambda: next(answers))
    before()
    again = reopen_run(run.folder, from_arrays(arrays))
    assert again.state.step == steps
    return load_file(execute(again) / "model.safetensors")


@pytest.fixture
def weights(tmp_path):
    """A file of weights of each of the two models."""

    def write(model):
        name = model["name"].removeprefix("timm:")
        path = tmp_path / f"{name}.safetensors"
        save_file(timm.create_model(name).state_dict(), path)
        return str(path)

    return write


def backbone_of(tensors, which="online"):
    start = f"{which}.backbone."
    return {k.removeprefix(start): t for k, t in tensors.items() if k.startswith(start)}


@pytest.mark.parametrize("model", [RESNET, VIT], ids=["resnet", "vit"])
def test_a_run_needs_its_weights_file_only_to_begin(
    model, weights, tmp_path, toy_arrays, toy_config
):
    path = weights(model)
    model = {**model, "weights": path, "hidden": 8, "embedding": 8}
    whole = execute(start(toy_config, tmp_path / "whole", toy_arrays, model=model))
    expected = load_file(whole / "model.safetensors")
    run = start(toy_config, tmp_path / "run", toy_arrays, model=model)
    found = stop_and_go_on(run, toy_arrays, before=Path(path).unlink)
    assert all(torch.equal(expected[name], found[name]) for name in expected)

    read = concont.load(whole.path, device="cpu")
    images = toy_arrays["x_test"]
    own = run.predictor.networks["online"].eval()
    own.load_state_dict({k.removeprefix("online."): v for k, v in expected.items() if "onl" in k})
    with torch.no_grad():
        by_hand = own(torch.from_numpy(images)[:, None].float() / 255).softmax(dim=1)
    assert np.allclose(read.predict_proba(images), by_hand.numpy(), atol=1e-5)
    described = whole.read_json("data.json")
    known = timm.get_pretrained_cfg(model["name"].removeprefix("timm:"))
    assert described["normalisation"]["mean"] == pytest.approx([np.mean(known.mean)])
    assert described["normalisation"]["std"] == pytest.approx([np.mean(known.std)])
    assert whole.read_json("environment.json")["timm"] == timm.__version__


def test_without_a_checkpoint_the_weights_are_needed_again(
    weights, tmp_path, toy_arrays, toy_config
):
    model = {**RESNET, "weights": weights(RESNET)}
    toy_config["train"]["checkpoint_every"] = 1000
    run = start(toy_config, tmp_path / "run", toy_arrays, model=model)
    steps = run.execute()
    next(steps)
    steps.close()  # killed
    save_file({"other": torch.ones(1)}, model["weights"])
    with pytest.raises(DataError, match="have changed since these settings were written"):
        reopen_run(run.folder, from_arrays(toy_arrays))
    Path(model["weights"]).unlink()
    with pytest.raises(UsageError, match="No such file"):
        reopen_run(run.folder, from_arrays(toy_arrays))


def test_a_record_names_the_weights_by_content(weights, tmp_path, toy_npz, toy_config):
    path = Path(weights(RESNET))
    toy_config["data"] |= {"source": str(toy_npz)}
    toy_config |= {"model": {**RESNET, "weights": str(path)}}
    settings = resolve(toy_config)
    folder = execute(prepare(settings, RunFolder(tmp_path / "run")))
    record = of_run(folder)
    assert str(tmp_path) not in json.dumps(record)
    assert record["settings"]["model"]["weights"] == path.name
    assert record["settings"]["model"]["weights_digest"] == settings.model.weights_digest
    assert Job(settings, "mine").key == key_of(record) == record["settings_hash"]


def test_settings_made_in_python_get_their_digest_too(weights, tmp_path, toy_arrays, toy_config):
    from dataclasses import replace

    settings = resolve({**toy_config, "model": {**RESNET, "weights": weights(RESNET)}})
    bare = replace(settings, model=replace(settings.model, weights_digest=None))
    assert prepare(bare, RunFolder(tmp_path / "run"), from_arrays(toy_arrays)).settings == settings


def test_an_unknown_model_is_refused_before_the_data_is_read(tmp_path, toy_config):
    toy_config["data"] |= {"source": str(tmp_path / "nowhere.npz")}
    settings = resolve({**toy_config, "model": {"name": "timm:test_resnat"}})
    with pytest.raises(UsageError, match="did you mean test_resnet?"):
        prepare(settings, RunFolder(tmp_path / "run"))


@pytest.mark.parametrize("method", ["concont", "partial"])
@pytest.mark.parametrize("model", [{"name": "small", "width": 4}, RESNET], ids=["small", "timm"])
def test_a_backbone_of_its_own_rate_resumes_bit_for_bit(
    model, method, tmp_path, toy_arrays, toy_config
):
    toy_config["method"] = {"name": method}
    toy_config["data"]["labeled"] = None
    optimizer = {"lr": 0.05, "backbone_rate": 0.1, "warmup": 0.5}
    sections = {"model": model, "optimizer": optimizer}
    whole = execute(start(toy_config, tmp_path / "whole", toy_arrays, **sections))
    expected = load_file(whole / "model.safetensors")
    run = start(toy_config, tmp_path / "run", toy_arrays, **sections)
    found = stop_and_go_on(run, toy_arrays)
    assert all(torch.equal(expected[name], found[name]) for name in expected)


@pytest.mark.parametrize("name", ["small", "timm:test_resnet", "timm:test_vit"])
def test_a_frozen_backbone_stays_bit_for_bit(name, tmp_path, toy_arrays, toy_config):
    toy_config["optimizer"]["backbone_rate"] = 0
    run = start(toy_config, tmp_path / "run", toy_arrays, model={"name": name})
    before = {k: v.clone() for k, v in run.predictor.weights().items()}
    found = load_file(execute(run) / "model.safetensors")
    online, key = backbone_of(found), backbone_of(found, "key")
    for part in (online, key):
        assert all(torch.equal(part[k], old) for k, old in backbone_of(before).items())
    assert not torch.equal(found["online.classifier.weight"], before["online.classifier.weight"])
    assert not torch.equal(found["key.projector.0.weight"], before["key.projector.0.weight"])
    again = start(toy_config, tmp_path / "again", toy_arrays, model={"name": name})
    resumed = stop_and_go_on(again, toy_arrays)
    assert all(torch.equal(found[k], resumed[k]) for k in found)


PAGE = (Path(__file__).parent.parent / "docs" / "networks.md").read_text("utf-8")


def test_the_commands_of_the_page_about_networks_are_settings(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "vit.safetensors").write_bytes(b"")
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.DOTALL | re.M)
    for line in "".join(blocks).splitlines():
        words = line.split()
        given = [b for a, b in itertools.pairwise(words) if a == "--set"]
        refuse_unknown_model(resolve({}, "default", given).model)


@pytest.mark.slow
def test_the_example_of_an_own_network_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.M)
    names = {}
    exec(code, names)
    images = np.zeros((2, 8, 8), dtype=np.uint8)
    assert np.allclose(*(names[run].predict_proba(images) for run in ("run", "again")))
