import json
import shutil
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import concont
from concont.config.resolve import resolve
from concont.data.sources import from_arrays
from concont.errors import DataError, Interrupted, UsageError
from concont.runs.folder import RunFolder
from concont.sweep.job import Job
from concont.sweep.record import key_of, of_run
from concont.training.pace import announce
from concont.training.prepare import prepare
from concont.training.trainers import reopen_run

NAMES = np.array(["left", "right"])


@pytest.fixture
def arrays(toy_arrays):
    return {**toy_arrays, "classes": NAMES}


@pytest.fixture
def first(tmp_path, toy_config, arrays):
    """A finished run on two classes."""
    toy_config["train"]["epochs"] = 1
    return concont.train(toy_config, data=arrays, out=tmp_path / "first").path


def start(config, folder, arrays, first, **model):
    settings = resolve({**config, "model": {**config["model"], "start": str(first), **model}})
    return prepare(settings, RunFolder(folder), from_arrays(arrays))


def execute(run, stop=lambda: False):
    for _ in run.execute(stop):
        pass
    return load_file(run.folder / "model.safetensors")


def online_of(path):
    prefix = "online."
    weights = load_file(path / "model.safetensors")
    return {k.removeprefix(prefix): v for k, v in weights.items() if k.startswith(prefix)}


def test_both_networks_begin_as_the_online_one_ended_and_all_else_afresh(
    tmp_path, toy_config, arrays, first
):
    darker = {**arrays, "x_train": arrays["x_train"] // 2}
    run = start(toy_config, tmp_path / "next", darker, first)
    assert run.carried == 2
    for network in run.state.nets.modules.values():
        found = network.state_dict()
        assert all(torch.equal(found[name], kept) for name, kept in online_of(first).items())
    assert set(run.state.nets.modules) == {"online", "key"}
    plain = prepare(resolve(toy_config), RunFolder(tmp_path / "plain"), from_arrays(darker))
    for name, kept in plain.state.method_state.items():
        assert torch.equal(run.state.method_state[name], kept)
    assert not run.state.optimizer.state
    assert run.state.step == 0

    execute(run)  # and images are normalised as in the first run, whatever the new ones are
    described, before = (RunFolder(p).read_json("data.json") for p in (run.folder.path, first))
    assert described["normalisation"] == before["normalisation"]
    assert plain.moments[0].tolist() != before["normalisation"]["mean"]
    read = concont.load(run.folder.path, device="cpu")
    assert np.array_equal(
        read.predict_proba(darker["x_test"]), run.predictor.predict_proba(darker["x_test"])
    )


def test_rows_of_the_classifier_go_by_the_names_of_classes(tmp_path, toy_config, arrays, first):
    names = np.array(["up", "right", "down", "left"])
    other = {**arrays, "classes": names, "y_train": arrays["y_train"] + 2}
    run = start(toy_config, tmp_path / "next", {**other, "y_test": arrays["y_test"]}, first)
    assert run.carried == 2
    _, line = announce(run)
    assert line.endswith(f"starts from {first}: 2 of 4 classes are known there, 2 new")
    plain = prepare(resolve(toy_config), RunFolder(tmp_path / "plain"), from_arrays(other))
    kept, fresh = online_of(first), plain.state.nets.modules["online"].state_dict()
    for name in ("classifier.weight", "classifier.bias"):
        rows = run.state.nets.modules["online"].state_dict()[name]
        assert torch.equal(rows[[3, 1]], kept[name])
        assert torch.equal(rows[[0, 2]], fresh[name][[0, 2]])


def test_a_run_goes_on_bit_for_bit_though_its_start_is_gone(tmp_path, toy_config, arrays, first):
    toy_config["train"]["epochs"] = 2
    expected = execute(start(toy_config, tmp_path / "whole", arrays, first))
    run = start(toy_config, tmp_path / "next", arrays, first)
    answers = iter([False, False, True])
    with pytest.raises(Interrupted):
        execute(run, lambda: next(answers))
    normalisation = run.folder.read_json("data.json")["normalisation"]
    shutil.rmtree(first)
    again = reopen_run(run.folder, from_arrays(arrays))
    assert again.carried is None
    found = execute(again)
    assert all(torch.equal(expected[name], found[name]) for name in expected)
    assert run.folder.read_json("data.json")["normalisation"] == normalisation
    assert concont.load(run.folder.path, device="cpu").classes == tuple(NAMES)


def test_without_a_checkpoint_the_start_is_needed_as_it_was(tmp_path, toy_config, arrays, first):
    toy_config["train"]["checkpoint_every"] = 1000
    run = start(toy_config, tmp_path / "next", arrays, first)
    steps = run.execute()
    next(steps)
    steps.close()  # killed
    file = first / "model.safetensors"
    save_file({**load_file(file), "online.mean": torch.ones(1, 1, 1, 1)}, file)
    with pytest.raises(DataError, match="have changed since these settings were written"):
        reopen_run(run.folder, from_arrays(arrays))
    shutil.rmtree(first)
    with pytest.raises(UsageError, match=r"model\.safetensors: No such file"):
        reopen_run(run.folder, from_arrays(arrays))


def test_what_cannot_be_started_from_is_one_line(tmp_path, toy_config, arrays, first):
    def refused(kind, message, given=arrays, **model):
        with pytest.raises(kind, match=message) as told:
            start(toy_config, tmp_path / "next", given, first, **model)
        assert "\n" not in str(told.value)
        assert not (tmp_path / "next").exists()

    other = r"holds another network than small with these settings \(backbone\.0\.weight, .*more\)"
    refused(UsageError, other, width=8)
    refused(UsageError, r"another network .*\(projector\.0\.bias, projector\.0\.we", hidden=16)
    refused(UsageError, "another network than narrow-resnet18", name="narrow-resnet18")
    large = {k: v.repeat(2, 1).repeat(2, 2) if k[0] == "x" else v for k, v in arrays.items()}
    refused(UsageError, "learned from images of 8 x 8 x 1; these are 16 x 16 x 1", large)
    write = partial(RunFolder(first).write, "model.safetensors")  # which fits its checksum
    write(partial(save_file, {"classifier": torch.ones(2)}))
    refused(UsageError, "first holds no network to start from")
    write(lambda path: path.write_bytes(b"no weights at all"))
    refused(DataError, r"model\.safetensors are damaged, or no safetensors file")
    (first / "data.json").unlink()
    refused(UsageError, r"first holds no data\.json")


def test_a_network_of_ones_own_starts_from_a_run_of_it(tmp_path, toy_config, arrays):
    def body():
        return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 5), torch.nn.ReLU())

    first = concont.train(toy_config, data=arrays, model=body(), out=tmp_path / "first").path
    settings = resolve({**toy_config, "model": {**toy_config["model"], "start": str(first)}})
    run = prepare(settings, RunFolder(tmp_path / "next"), from_arrays(arrays), body())
    found = run.state.nets.modules["online"].state_dict()
    assert all(torch.equal(found[name], kept) for name, kept in online_of(first).items())


def test_a_record_names_the_start_by_content(tmp_path, toy_config, toy_npz, first, arrays):
    np.savez(toy_npz, **arrays)
    toy_config["data"] |= {"source": str(toy_npz)}
    run = start(toy_config, tmp_path / "next", arrays, first)
    job = Job(run.settings, "mine")
    execute(prepare(run.settings, RunFolder(tmp_path / "next")))
    record = of_run(RunFolder(tmp_path / "next"))
    assert str(tmp_path) not in json.dumps(record)
    assert record["settings"]["model"]["start"] == "model.safetensors"
    assert job.key == key_of(record) == record["settings_hash"]
    bare = replace(run.settings, model=replace(run.settings.model, start_digest=None))
    again = prepare(bare, RunFolder(tmp_path / "again"), from_arrays(arrays))
    assert again.settings == run.settings


def flip_a_bit(path):
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)


def spoil_weights(path, change):
    """Written anew, checksum and all, by somebody who knows how they are made."""
    weights = load_file(path)
    weights["online.classifier.bias"] = change(weights["online.classifier.bias"])
    folder = RunFolder(path.parent)
    folder.write(path.name, lambda temporary: save_file(weights, temporary))


DAMAGES = {
    "flipped": (flip_a_bit, "model.safetensors"),
    "no number": (lambda path: spoil_weights(path, lambda bias: bias * torch.nan), "no number"),
    "type": (lambda path: spoil_weights(path, torch.Tensor.double), "holds another network"),
}


@pytest.mark.parametrize("kind", DAMAGES)
def test_weights_that_are_not_those_that_the_run_wrote_are_refused(
    kind, tmp_path, toy_config, arrays, first
):
    damage, message = DAMAGES[kind]
    damage(first / "model.safetensors")
    with pytest.raises((DataError, UsageError), match=message):
        start(toy_config, tmp_path / "next", arrays, first)
