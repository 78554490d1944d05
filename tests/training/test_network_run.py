import json
from dataclasses import replace

import numpy as np
import pytest
import torch
import yaml
from safetensors.torch import load_file

from concont.config.resolve import resolve
from concont.data.sources import from_arrays
from concont.errors import DataError, Interrupted, NonFiniteLoss
from concont.methods.partial import Partial
from concont.runs.files import CONTENTS
from concont.runs.folder import RunFolder
from concont.training import checkpoint
from concont.training.prepare import prepare
from concont.training.trainers import reopen_run


@pytest.fixture
def data(toy_arrays):
    return from_arrays(toy_arrays)


def start(config, folder, data):
    return prepare(resolve(config), RunFolder(folder), data)


def finish(run, stop=lambda: False):
    for _ in run.execute(stop):
        pass
    return run.folder


def test_a_run_folder_holds_what_it_should(tmp_path, toy_config, data):
    folder = finish(start(toy_config, tmp_path / "run", data))
    names = {path.name for path in folder.path.iterdir()}
    assert set(CONTENTS) <= names
    assert any(name.startswith("events.out.tfevents") for name in names)
    assert not any(name.endswith(".tmp") for name in names)

    rows = folder.metrics()
    summary = folder.read_json("summary.json")
    assert summary["accuracy_last"] == rows[-1]["accuracy"]
    assert summary["accuracy_best"] == max(row["accuracy"] for row in rows)
    assert summary["evaluated_on"] == "test"
    assert summary["data"] == data.digest  # known by its content, never by a path
    assert len(summary["settings_hash"]) == 16
    described = folder.read_json("data.json")
    kept = np.load(folder / "candidates.npz")
    assert kept["candidates"].shape == (40, 2)
    assert kept["rows"].tolist() == list(range(40))
    n_partial = (~kept["candidates"].all(axis=1)).sum()  # 20 less those that a flip filled
    assert 10 < n_partial <= 20
    sizes = (described["n_train"], described["n_partial"], described["n_test"])
    assert sizes == (40, n_partial, 20)
    config = yaml.safe_load((folder / "config.yaml").read_text())
    assert config["train"]["epochs"] == 3
    environment = folder.read_json("environment.json")
    assert {"torch", "python", "device", "commit", "clean", "command"} <= set(environment)


@pytest.mark.parametrize(
    "changes", [{}, {"unlabeled": False}, {"holdout": 0.2}, {"unlabeled": False, "holdout": 0.2}]
)
def test_another_run_can_train_on_the_very_same_sets(tmp_path, toy_config, data, changes):
    """Whatever rows the first one left out, and without drawing any set again."""
    toy_config["data"] |= changes
    first = finish(start(toy_config, tmp_path / "first", data))
    given = {"candidates": str(first / "candidates.npz"), "labeled": None}
    toy_config["data"] |= given
    second = finish(start(toy_config, tmp_path / "second", data))
    files = [np.load(folder / "candidates.npz") for folder in (first, second)]
    assert files[0]["candidates"].shape == (40, 2)
    for name in ("rows", "labeled", "candidates", "data", "hash"):
        assert np.array_equal(files[0][name], files[1][name])
    assert len(files[0]["rows"]) < 40 or not changes
    hashes = [folder.read_json("data.json")["sets_hash"] for folder in (first, second)]
    assert hashes == [str(files[0]["hash"])] * 2
    weights = [load_file(folder / "model.safetensors") for folder in (first, second)]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])


def test_saved_weights_are_the_last_ones(tmp_path, toy_config, data):
    run = start(toy_config, tmp_path / "run", data)
    folder = finish(run)
    saved = load_file(folder / "model.safetensors")
    for name, module in run.state.nets.modules.items():
        for key, tensor in module.state_dict().items():
            assert torch.equal(saved[f"{name}.{key}"], tensor)


def test_a_stop_request_writes_a_checkpoint_and_the_run_goes_on_from_it(tmp_path, toy_config, data):
    expected = load_file(finish(start(toy_config, tmp_path / "whole", data)) / "model.safetensors")
    toy_config["train"]["checkpoint_every"] = 1000  # so that only the stop writes one
    run = start(toy_config, tmp_path / "run", data)
    answers = iter([False, False, True])  # in the middle of the second epoch
    with pytest.raises(
        Interrupted, match="stopped after step 3 of 6; go on with: concont train --res"
    ):
        finish(run, stop=lambda: next(answers))
    assert not run.folder.finished
    again = reopen_run(run.folder, data)
    assert again.state.step == 3
    found = load_file(finish(again) / "model.safetensors")
    assert all(torch.equal(expected[name], found[name]) for name in expected)
    assert [row["step"] for row in run.folder.metrics()] == [2, 4, 6]
    assert len(run.folder.read_json("environment.json")["earlier"]) == 1


def test_a_run_without_a_checkpoint_starts_again(tmp_path, toy_config, data):
    toy_config["train"]["checkpoint_every"] = 1000
    run = start(toy_config, tmp_path / "run", data)
    steps = run.execute()
    for _ in range(3):
        next(steps)
    steps.close()  # killed
    assert [row["step"] for row in run.folder.metrics()] == [2]
    again = reopen_run(run.folder, data)
    assert again.state.step == 0
    finish(again)
    assert [row["step"] for row in run.folder.metrics()] == [2, 4, 6]


def test_other_data_is_refused_on_resume(tmp_path, toy_config, toy_arrays, data):
    run = start(toy_config, tmp_path / "run", data)
    steps = run.execute()
    next(steps)
    steps.close()
    toy_arrays["x_train"] = toy_arrays["x_train"] // 2
    with pytest.raises(DataError, match="trained on other data"):
        reopen_run(run.folder, from_arrays(toy_arrays))


def test_a_checkpoint_that_does_not_fit_its_settings_is_refused(tmp_path, toy_config, data):
    folder = finish(start(toy_config, tmp_path / "run", data))
    text = (folder / "config.yaml").read_text()
    (folder / "config.yaml").write_text(text.replace("width: 4", "width: 5"))
    with pytest.raises(DataError, match=r"config\.yaml holds other settings than the run was"):
        reopen_run(folder, data)
    (folder / "checksums.json").unlink()  # as in a folder of an earlier version
    with pytest.raises(DataError, match=r"does not fit its config\.yaml") as error:
        reopen_run(folder, data)
    assert "\n" not in str(error.value)


def test_settings_that_cannot_change_the_result_may_be_edited(tmp_path, toy_config, data):
    toy_config["train"]["epochs"] = 1
    folder = finish(start(toy_config, tmp_path / "run", data))
    (folder / "summary.json").unlink()
    text = (folder / "config.yaml").read_text()
    for before, after in (
        ("checkpoint_every: 0.0", "checkpoint_every: 7.0"),
        ("root: null", "root: /x"),
    ):
        assert before in text
        (folder / "config.yaml").write_text(text.replace(before, after))
        finish(reopen_run(folder, data))
        assert after in (folder / "config.yaml").read_text()


@pytest.mark.parametrize("step", [-5, 10**9])
def test_a_checkpoint_of_a_step_outside_the_run_is_refused(tmp_path, toy_config, data, step):
    folder = finish(start(toy_config, tmp_path / "run", data))
    saved = torch.load(folder / "checkpoint.pt", weights_only=True)
    checkpoint.save(folder, {**saved, "step": step})
    with pytest.raises(DataError, match=f"of step {step}; the run has 6"):
        reopen_run(folder, data)


class Exploding(Partial):
    """Loses its mind at the fourth step."""

    def losses(self, nets, state, batch):
        out = super().losses(nets, state, batch)
        Exploding.steps += 1
        return replace(out, total=out.total * float("nan")) if Exploding.steps == 4 else out


def test_a_loss_that_is_not_finite_stops_the_run(tmp_path, toy_config, data):
    toy_config["train"]["epochs"] = 6  # of one step: 20 rows, batches of 16
    run = start({**toy_config, "method": {"name": "partial"}}, tmp_path / "run", data)
    Exploding.steps = 0
    run = replace(run, settings=replace(run.settings, method=Exploding()))
    with pytest.raises(NonFiniteLoss) as caught:
        finish(run)
    message = str(caught.value)
    assert "at step 4: loss nan, loss_part 0." in message
    rows = run.order.epoch(3)[0].tolist()
    shown = ", ".join(map(str, rows[:8]))
    assert f"its batch: rows {shown} and 8 more of candidates.npz" in message
    assert "weights are not finite from backbone." in message
    assert f"the last good checkpoint is {run.folder / 'checkpoint.pt'}" in message
    saved = torch.load(run.folder / "checkpoint.pt", weights_only=True)
    assert saved["step"] == 3
    assert not run.folder.finished


def test_without_a_test_set_accuracies_are_null(tmp_path, toy_config, toy_arrays):
    arrays = {k: v for k, v in toy_arrays.items() if "test" not in k}
    folder = finish(start(toy_config, tmp_path / "run", from_arrays(arrays)))
    assert folder.read_json("summary.json")["accuracy_last"] is None
    line = json.loads((folder / "metrics.jsonl").read_text().splitlines()[-1])
    assert line["accuracy"] is None
    assert line["accuracy_momentum"] is None
