"""What goes wrong on a GPU: losses that are not finite, and too little memory."""

import gc
import math
import re
from dataclasses import replace

import pytest
import torch

from concont.errors import ConcontError, NonFiniteLoss
from concont.methods.partial import Partial
from concont.training.cuda_speed import Captured
from concont.training.pace import announce
from concont.training.step import Step
from gpu import GPU, NEEDS_GPU, job, stripes, warnings_of

pytestmark = NEEDS_GPU


class BadEpoch(Partial):
    """Has no finite loss in the second epoch; only the device knows, as with real data."""

    def losses(self, nets, state, batch):
        out = super().losses(nets, state, batch)
        factor = torch.where(batch.epoch == 1, math.inf, 1.0)
        return replace(out, total=out.total * factor)


def bad_epoch_job(config, arrays, folder="unused", **train):
    ready = job({**config, "method": {"name": "partial"}}, arrays, folder, **train)
    return replace(ready, settings=replace(ready.settings, method=BadEpoch()))


def copy_learned(state):
    """Weights, averages and momentum, as they are now."""
    tensors = [t for module in state.nets.modules.values() for t in module.state_dict().values()]
    moving = [t for each in state.optimizer.state.values() for t in each.values()]
    return [t.clone() for t in [*tensors, *moving] if isinstance(t, torch.Tensor)]


@pytest.mark.parametrize("compiled", [False, True])
def test_a_step_that_is_left_out_changes_nothing(toy_arrays, toy_config, caplog, compiled):
    ready = bad_epoch_job(toy_config, toy_arrays, compile=compiled, skip_nonfinite=2)
    step, state = Step(ready.settings, ready.state, ready.data), ready.state
    assert not isinstance(step.run, Captured)  # to look at the gradients waits for the device
    rows = ready.order.epoch(0)[:1]
    (images,) = ready.data.images.batches(rows)
    changed = []
    for epoch in (0, 1, 1, 2):
        before = copy_learned(state)
        step(rows[0].to(GPU), images, 0.01, epoch)
        after = copy_learned(state)
        same = len(before) == len(after) and all(map(torch.equal, before, after))
        changed.append(not same)
    assert changed == [True, False, False, True]
    assert (state.step, int(state.steps_on_device), state.skipped) == (4, 4, 0)
    state.meter.check()
    assert math.isfinite(state.meter.read()["loss"])
    left_out = [line for line in warnings_of(caplog) if line.startswith("left out: ")]
    assert [line.split(", ")[0][-6:] for line in left_out] == ["step 2", "step 3"]
    assert all("nearest to the loss in classifier.bias; its batch: rows" in x for x in left_out)


def test_too_many_bad_steps_in_a_row_end_the_run(tmp_path, toy_arrays, toy_config):
    ready = bad_epoch_job(toy_config, toy_arrays, tmp_path / "run", skip_nonfinite=1, batch_size=8)
    with pytest.raises(NonFiniteLoss, match=r"at step 4, .*; 2 steps in a row") as caught:
        list(ready.execute())
    assert "\n" not in str(caught.value)


def test_a_captured_run_that_goes_wrong_is_diagnosed(
    tmp_path, toy_arrays, toy_config, uncompiled, caplog
):
    ready = bad_epoch_job(toy_config, toy_arrays, tmp_path / "run", batch_size=4, compile=True)
    assert ready.order.steps == 5 > Captured.WARM_UP  # so the bad steps are replayed
    with pytest.raises(NonFiniteLoss) as caught:
        list(ready.execute())
    assert warnings_of(caplog) == []
    message = str(caught.value)
    assert message.startswith("the loss is not finite at step 6: ")
    rows = ", ".join(map(str, ready.order.epoch(1)[0].tolist()))
    assert f"its batch: rows {rows} of candidates.npz" in message
    assert "weights are not finite from " in message
    assert not (tmp_path / "run" / "model.safetensors").exists()


@pytest.fixture
def limit_memory():
    """Leave so many bytes of the GPU beyond what is held now."""

    def limit(more):
        gc.collect()
        torch.cuda.empty_cache()
        _, total = torch.cuda.mem_get_info()
        torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + more) / total)

    yield limit
    torch.cuda.set_per_process_memory_fraction(1.0)
    torch.cuda.empty_cache()


def measure_step(ready):
    """The most bytes that a step holds beyond what is there before it."""
    rows = ready.order.epoch(0)[:1]
    (images,) = ready.data.images.batches(rows)
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    Step(ready.settings, ready.state, ready.data, fast=False)(rows[0].to(GPU), images, 0.0)
    return torch.cuda.max_memory_allocated() - before


def told_of_full_memory(ready, when):
    with pytest.raises(ConcontError) as error:
        list(ready.execute()) if when == "training" else announce(ready)
    return str(error.value)


@pytest.mark.parametrize(
    ("when", "captured"), [("training", False), ("training", True), ("announcing", True)]
)
def test_a_batch_that_does_not_fit_is_told_with_one_that_does(
    tmp_path, toy_config, uncompiled, limit_memory, when, captured
):
    toy_config["model"] |= {"name": "small", "width": 32}
    arrays = stripes(2048, 32)

    def make(batch_size):
        folder = tmp_path / f"of-{batch_size}"
        return job(toy_config, arrays, folder, batch_size=batch_size, compile=captured, epochs=1)

    measure_step(make(256))  # what is made once, such as workspaces, is there from then on
    step = measure_step(make(256))
    assert step > 50 * 2**20  # else what follows is about the allocator's pieces
    ready = make(2048)
    limit_memory(step)
    message = told_of_full_memory(ready, when)
    found = re.fullmatch(
        r"the GPU has too little memory for a batch of 2048 rows; about (\d+) would fit: "
        r"--set train.batch_size=\1",
        message,
    )
    assert found, message
    fits = int(found[1])
    assert 64 <= fits <= 512
    del ready
    gc.collect()
    torch.cuda.empty_cache()
    assert [p.step for p in make(fits).execute()][-1] == 2048 // fits
