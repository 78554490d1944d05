import logging
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
import torch

from concont.config.resolve import resolve
from concont.data.placement import Streamed, TrainingSet
from concont.data.problem import make_problem
from concont.data.sources import from_arrays
from concont.errors import DataError, UsageError
from concont.runs.folder import RunFolder
from concont.runs.settings import Data
from concont.training import prepare as module
from concont.training.evaluate import TestSet
from concont.training.prepare import measure_channels, prepare

CPU = torch.device("cpu")


def test_moments_are_those_of_the_training_images(toy_arrays, toy_config):
    images = np.stack([toy_arrays["x_train"]] * 3, axis=-1)
    images[..., 1] //= 2
    data = from_arrays({"x_train": images, "y_train": toy_arrays["y_train"]})
    job = prepare(resolve(toy_config), RunFolder("unused"), data)
    mean, std = measure_channels(job.problem)
    scaled = images.reshape(-1, 3) / 255
    assert mean.tolist() == pytest.approx(scaled.mean(axis=0).tolist(), rel=1e-5)
    assert std.tolist() == pytest.approx(scaled.std(axis=0).tolist(), rel=1e-4)


def test_nothing_is_written_before_the_run_starts(tmp_path, toy_arrays, toy_config):
    prepare(resolve(toy_config), RunFolder(tmp_path / "run"), from_arrays(toy_arrays))
    assert not (tmp_path / "run").exists()


def test_a_batch_that_shrinks_is_warned_of_once(toy_arrays, toy_config, caplog):
    toy_config["train"]["batch_size"] = 100
    with caplog.at_level(logging.WARNING, "concont"):
        prepare(resolve(toy_config), RunFolder("unused"), from_arrays(toy_arrays))
    assert caplog.messages == ["a batch holds 40 rows, not 100: the data has no more"]


def test_true_label_selection_needs_every_label(toy_arrays, toy_config):
    toy_config["method"]["selection"] = "true"
    toy_arrays["y_train"] = np.where(np.arange(40) == 3, -1, toy_arrays["y_train"])
    toy_config["data"] = {}
    with pytest.raises(UsageError, match="needs the true label of every training image"):
        prepare(resolve(toy_config), RunFolder("unused"), from_arrays(toy_arrays))


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"labeled": 0.2, "ambiguity": 0.6},
        {"labeled": 4, "unlabeled": False},
        {"unlabeled": True, "ambiguity": 0.1, "at_least_two": True},
        {"candidates": "nowhere.npz"},
    ],
)
def test_the_bound_sees_every_image_whatever_the_problem(toy_arrays, toy_config, data):
    toy_config |= {"method": {"name": "supervised"}, "data": data}
    job = prepare(resolve(toy_config), RunFolder("unused"), from_arrays(toy_arrays))
    assert job.problem.rows.tolist() == list(range(40))
    assert job.problem.truth.tolist() == toy_arrays["y_train"].tolist()
    kept = job.settings.data
    assert kept == replace(resolve({**toy_config, "data": {}}).data, unlabeled=True)
    assert job.order.steps == 40 // 16


@pytest.mark.parametrize("own_sets", [False, True])
def test_the_bound_needs_every_label(toy_arrays, toy_config, own_sets):
    toy_config |= {"method": {"name": "supervised"}, "data": {}}
    toy_arrays["y_train"] = np.where(np.arange(40) == 3, -1, toy_arrays["y_train"])
    if own_sets:  # a candidate set is no label
        toy_arrays["candidates"] = np.ones((40, 2), bool)
        toy_arrays["candidates"][:, 1] = toy_arrays["y_train"] == 1
    with pytest.raises(UsageError) as caught:
        prepare(resolve(toy_config), RunFolder("unused"), from_arrays(toy_arrays))
    assert str(caught.value) == "this bound needs the true label of every training image"


def test_tables_of_all_rows_lie_beside_the_candidate_sets(toy_arrays, toy_config):
    toy_config["method"] = {"name": "pico", "queue": 32}
    job = prepare(resolve(toy_config), RunFolder("unused"), from_arrays(toy_arrays))
    sets = torch.from_numpy(job.problem.candidates)
    table = job.state.method_state["confidence"]
    assert torch.equal(table, sets / sets.sum(dim=1, keepdim=True))
    assert job.state.method_state["prototypes"].shape == (2, 8)  # classes, embedding
    assert len(table) == len(job.data.candidates) == 20  # without the unlabelled


def test_the_optimiser_is_the_one_that_was_asked_for(toy_arrays, toy_config):
    toy_config["optimizer"] = {"lr": 0.3, "momentum": 0.7, "weight_decay": 0.02, "nesterov": True}
    job = prepare(resolve(toy_config), RunFolder("unused"), from_arrays(toy_arrays))
    (group,) = job.state.optimizer.param_groups
    assert {name: group[name] for name in toy_config["optimizer"]} == toy_config["optimizer"]
    assert not group["fused"]  # the device's own way, and a CPU has none
    learned = {id(p) for p in group["params"]}
    assert learned == {id(p) for p in job.state.nets.modules["online"].parameters()}


@pytest.mark.parametrize("rate", [0.0, 0.1, 2.0])
def test_a_backbone_with_a_rate_of_its_own_is_a_group_of_its_own(toy_arrays, toy_config, rate):
    toy_config["optimizer"] = {"lr": 0.3, "backbone_rate": rate}
    job = prepare(resolve(toy_config), RunFolder("unused"), from_arrays(toy_arrays))
    network, groups = job.state.nets.modules["online"], job.state.optimizer.param_groups
    backbone = {id(p) for p in network.backbone.parameters()}
    everything = {id(p) for p in network.parameters()}
    found = [{id(p) for p in group["params"]} for group in groups]
    assert found == ([backbone] if rate else []) + [everything - backbone]
    assert [group["lr"] for group in groups] == ([0.3 * rate] if rate else []) + [0.3]
    assert all(p.requires_grad is (rate > 0) for p in network.backbone.parameters())


def test_images_too_small_and_batches_of_one_are_refused(toy_arrays, toy_config):
    tiny = {**toy_arrays, "x_train": toy_arrays["x_train"][:, :2, :2]}
    del tiny["x_test"], tiny["y_test"]
    with pytest.raises(DataError, match="images are 2 x 2; the smallest side is 4"):
        prepare(resolve(toy_config), RunFolder("unused"), from_arrays(tiny))
    toy_config["train"]["batch_size"] = 1
    with pytest.raises(UsageError, match="at least two rows in a batch"):
        prepare(resolve(toy_config), RunFolder("unused"), from_arrays(toy_arrays))


def test_a_shift_beyond_the_image_is_refused(toy_arrays, toy_config):
    toy_config["views"]["weak"] = {"pad": 0.9}  # 7 pixels
    prepare(resolve(toy_config), RunFolder("unused"), from_arrays(toy_arrays))
    toy_config["views"]["weak"] = {"pad": 8}
    with pytest.raises(UsageError, match="views.weak.pad is 8; the images are 8 x 8"):
        prepare(resolve(toy_config), RunFolder("unused"), from_arrays(toy_arrays))


@pytest.mark.parametrize("share", [None, 0.25])
@pytest.mark.parametrize("rows", ["all", "partial"])
def test_a_method_that_asks_for_partial_rows_first_gets_them(toy_arrays, toy_config, rows, share):
    toy_config["method"] |= {"teacher": "momentum", "weak_rows": rows}
    toy_config["data"] |= {"labeled": 10, "unlabeled": True}
    toy_config["train"] |= {"batch_size": 20, "partial_share": share}
    job = prepare(resolve(toy_config), RunFolder("unused"), from_arrays(toy_arrays))
    found = job.order.leading_partial
    if share is not None:
        assert found == 5
    else:  # a quarter of 20, one more, up to a multiple of 8
        assert found == (8 if rows == "partial" else None)
    for batch in job.order.epoch(0) if found is not None else ():
        partial = ~job.data.candidates[batch].all(dim=1)
        assert not partial[found:].any()


@pytest.mark.parametrize("chosen", [{"holdout": 0.3}, {"unlabeled": False}])
def test_rows_of_a_mapped_file_are_never_all_in_memory(tmp_path, monkeypatch, chosen):
    """64 MB of images, of which a small part may be in memory at a time."""
    images = np.lib.format.open_memmap(tmp_path / "x.npy", "w+", np.uint8, (500, 256, 170, 3))
    images[:] = np.arange(500)[:, None, None, None] % 200
    labels, sets = np.arange(500) % 2, np.ones((500, 2), dtype=bool)
    sets[:300, 1] = False
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    arrays = {"x_train": mapped, "y_train": labels, "candidates": sets}
    data = from_arrays(arrays)
    monkeypatch.setattr(module, "AT_ONCE", 2**19)
    tracemalloc.start()
    problem = make_problem(data, Data(**{"unlabeled": True, **chosen}))
    mean, _ = measure_channels(problem)
    training = TrainingSet.of(problem, CPU, 0.5)
    assert isinstance(training.images, Streamed)
    order = torch.randperm(len(problem.images)).reshape(-1, 10)
    seen = [batch[:, 0, 0, 0] for batch in training.images.batches(order)]
    test = TestSet.of(problem, CPU, 0.5)
    held = [] if test is None else [part[:, 0, 0, 0] for part in test.images.split(10)]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < images.nbytes / 8
    expected = torch.from_numpy(images[:, 0, 0, 0])
    assert torch.equal(torch.cat(seen), expected[problem.rows][order.flatten()])
    assert mean[0].item() == pytest.approx(expected[problem.rows].double().mean().item() / 255)
    rest = np.setdiff1d(np.arange(500), problem.rows)
    assert len(rest) == (150 if "holdout" in chosen else 200)
    if "holdout" in chosen:
        assert torch.equal(torch.cat(held), expected[rest])


def test_of_a_very_large_set_every_kth_image_is_measured(toy_arrays, toy_config, monkeypatch):
    ready = prepare(resolve(toy_config), RunFolder("unused"), from_arrays(toy_arrays))
    images = toy_arrays["x_train"] / 255
    monkeypatch.setattr(module, "MEASURED", toy_arrays["x_train"].nbytes // 4)
    for at_once in (2**22, 64, 3 * 64):  # all in one go, and in several
        monkeypatch.setattr(module, "AT_ONCE", at_once)
        mean, std = module.measure_channels(ready.problem)
        assert mean.item() == pytest.approx(images[::4].mean(), abs=1e-6)
        assert std.item() == pytest.approx(images[::4].std(), abs=1e-6)


def test_a_frozen_backbone_without_weights_is_told_of(toy_arrays, toy_config, caplog):
    toy_config["optimizer"] = {"lr": 0.1, "backbone_rate": 0.0}
    prepare(resolve(toy_config), RunFolder("unused"), from_arrays(toy_arrays))
    assert "frozen with random weights" in caplog.text


@pytest.mark.parametrize("share", [0.0, 0.02])
def test_batches_without_a_single_label_are_refused(toy_arrays, toy_config, share):
    toy_config["train"]["partial_share"] = share
    with pytest.raises(UsageError, match=rf"partial_share is {share:g}: no row of a batch of 16"):
        prepare(resolve(toy_config), RunFolder("unused"), from_arrays(toy_arrays))
    toy_config["train"]["partial_share"] = 1 / 16
    prepare(resolve(toy_config), RunFolder("unused"), from_arrays(toy_arrays))
    toy_config["train"]["partial_share"] = share
    toy_config["data"] = {"labeled": 0.5, "unlabeled": False}  # so that every row has a label
    prepare(resolve(toy_config), RunFolder("unused"), from_arrays(toy_arrays))
