"""Steps whose gradients are no finite numbers: left out, or the end with a diagnosis."""

from dataclasses import replace

import pytest
import torch

from concont.config.resolve import resolve
from concont.data.sources import from_arrays
from concont.errors import NonFiniteLoss
from concont.methods.partial import Partial
from concont.runs.folder import RunFolder
from concont.training.non_finite import describe_rows, find_bad_weights, refuse_bad_weights
from concont.training.prepare import prepare
from concont.training.step import Step
from concont.training.trainers import reopen_run


class Bursting(Partial):
    """Has no finite loss in the steps of `bad`, counted from 1."""

    bad, steps = (), 0

    def losses(self, nets, state, batch):
        Bursting.steps += 1
        out = super().losses(nets, state, batch)
        factor = float("inf") if Bursting.steps in Bursting.bad else 1.0
        return replace(out, total=out.total * factor)


@pytest.fixture
def make(tmp_path, toy_config, toy_arrays, monkeypatch):
    """A run of six steps, some of them bad, that may leave out so many in a row."""

    def make(bad, limit, name="run"):
        monkeypatch.setattr(Bursting, "bad", bad)
        monkeypatch.setattr(Bursting, "steps", 0)
        toy_config["train"] |= {"epochs": 6, "skip_nonfinite": limit}
        settings = resolve({**toy_config, "method": {"name": "partial"}})
        run = prepare(settings, RunFolder(tmp_path / name), from_arrays(toy_arrays))
        return replace(run, settings=replace(settings, method=Bursting()))

    return make


def finish(run):
    for _ in run.execute():
        pass
    return run


def test_a_step_that_is_left_out_changes_nothing_but_the_count(make):
    run = make(bad=(1,), limit=1)
    step, rows = Step(run.settings, run.state, run.data), run.order.epoch(0)
    before = {
        f"{name}.{key}": tensor.clone()
        for name, module in run.state.nets.modules.items()
        for key, tensor in module.state_dict().items()
    }
    step(rows[0], next(run.data.images.batches(rows)), lr=0.1)
    for name, module in run.state.nets.modules.items():
        for key, tensor in module.state_dict().items():
            assert torch.equal(tensor, before[f"{name}.{key}"]), key
    assert (run.state.step, run.state.steps_on_device.item(), run.state.skipped) == (1, 1, 1)
    assert not any(run.state.optimizer.state.values())
    assert run.state.meter.sums.tolist() == [0.0] * len(run.state.meter.sums)
    step(rows[0], next(run.data.images.batches(rows)), lr=0.1)
    assert run.state.skipped == 0


def test_so_many_in_a_row_are_left_out_and_the_run_comes_to_its_end(make, caplog):
    run = finish(make(bad=(2, 3, 5), limit=2))
    assert [line.split(";")[0] for line in caplog.messages if "left out" in line] == [
        f"left out: no finite loss or gradients at step {n}, nearest to the loss in classifier.bias"
        for n in (2, 3, 5)
    ]
    assert run.folder.read_summary().steps == 6
    assert all(line["loss"] is None or line["loss"] < 100 for line in run.folder.metrics())


def test_one_more_in_a_row_ends_the_run_with_a_diagnosis(make):
    with pytest.raises(NonFiniteLoss) as caught:
        finish(make(bad=(2, 4, 5, 6), limit=2))
    message = str(caught.value)
    assert "at step 6, nearest to the loss in classifier.bias; its batch: rows " in message
    assert "; 3 steps in a row; the last good checkpoint is " in message
    assert "\n" not in message


def test_a_guard_changes_no_number_of_a_run_that_needs_none(make):
    runs = [finish(make(bad=(), limit=k, name=str(k))) for k in (0, 3)]
    first, second = ((r.folder / "model.safetensors").read_bytes() for r in runs)
    assert first == second
    assert runs[0].settings.hash("d") != runs[1].settings.hash("d")


def test_the_count_goes_on_after_a_resume(make, toy_arrays):
    run = make(bad=(3, 4, 5), limit=2)
    steps = run.execute()
    for _ in range(4):
        next(steps)
    steps.close()
    again = reopen_run(run.folder, from_arrays(toy_arrays))
    assert (again.state.step, again.state.skipped) == (4, 2)


def test_a_network_with_bad_weights_is_never_saved(make):
    run = make(bad=(), limit=0)
    refuse_bad_weights(run.state)
    with torch.no_grad():
        run.state.nets.modules["online"].classifier.weight[0, 0] = float("nan")
    assert find_bad_weights(run.state) == "classifier.weight"
    with pytest.raises(NonFiniteLoss, match="the weights are not finite after step 0"):
        refuse_bad_weights(run.state)


def test_a_few_rows_are_named():
    assert describe_rows(torch.tensor([3, 1])) == "its batch: rows 3, 1 of candidates.npz"
    assert "6, 7 and 2 more of" in describe_rows(torch.arange(10))
