"""What the tests of ranks do on each of them."""

import logging

import numpy as np
import torch
from torch import nn

from concont.config.resolve import resolve
from concont.data.sources import from_arrays
from concont.ranks import tensors, world
from concont.ranks.ends import joined
from concont.runs.folder import RunFolder
from concont.training.evaluate import accuracy
from concont.training.prepare import prepare
from concont.training.step import Step
from toys import EVERY, small_queue

STEPS = 10
OTHERS = {
    "queries": {"name": "concont", "contrast_set": "queries", "trust": 0.5},
    "weak-partial": {"name": "concont", "weak_rows": "partial", "teacher": "momentum"},
    "part-mean": {"name": "concont", "part_mean": "partial", "branches": "two"},
    "own-key-alone": {"name": "concont", "selection": "unsupcon"},
}
METHODS = {name: small_queue(method) for name, method in {**EVERY, **OTHERS}.items()}


def prepare_run(config, arrays, model=None):
    """A run that is never written."""
    return prepare(resolve(config), RunFolder("unused"), from_arrays(arrays), model)


def take_steps(config, arrays):
    """Losses, and all that ten steps have changed, of this rank."""
    run = prepare_run(config, arrays)
    settings = run.settings
    if "outside" in run.state.method_state:  # so that some sets are overruled this soon
        run.state.method_state["outside"].copy_(0.5 + torch.arange(len(run.data.truth)) % 3 / 5)
        run.state.method_state["outside_limit"].fill_(0.6)
    step, losses = Step(settings, run.state, run.data, None, run.order.leading_partial), []
    plan = torch.cat([run.order.epoch(epoch) for epoch in range(STEPS)])[:STEPS]
    for number, (rows, images) in enumerate(zip(plan, run.data.batches(plan), strict=True)):
        step(rows, images, 0.02, number // 2)
        losses.append([value or 0.0 for value in run.state.meter.read().values()])
    found = {f"memory.{name}": kept for name, kept in run.state.method_state.items()}
    for name, module in run.state.nets.modules.items():
        found |= {f"{name}.{key}": tensor for key, tensor in module.state_dict().items()}
    found["losses"] = torch.tensor(losses, dtype=torch.float64)
    found["accuracy"] = torch.tensor(accuracy(run.state.nets.modules["online"], run.test)[0])
    return found


def refuse_to_fall_back(record):
    """What is asked to be compiled must be."""
    assert "not compiled" not in record.getMessage()
    return True


def main(given, out):
    """Each rank writes what it has found, beside the others."""
    jobs = torch.load(given, weights_only=False)
    logging.getLogger("concont").addFilter(refuse_to_fall_back)
    with joined():
        found = {name: take_steps(*job) for name, job in jobs.items()}
        torch.save(found, f"{out}.{world.rank()}")


class OwnBody(nn.Module):
    """A network of a user's own, which begins with other weights on every rank."""

    def __init__(self):
        super().__init__()
        draw = np.random.default_rng(world.rank() + 1)
        self.linear = nn.Linear(64, 12)
        with torch.no_grad():
            self.linear.weight.copy_(torch.from_numpy(draw.normal(size=(12, 64))))
        self.register_buffer("noise", torch.from_numpy(draw.normal(size=12)).float())
        self.register_buffer("kept", torch.from_numpy(draw.random(12) < 0.5))

    def forward(self, images):
        return (self.linear(images.flatten(1)) + self.noise) * self.kept


def begin_apart(given, out):
    """Each rank writes the networks that a run of such a network begins with."""
    config, arrays = torch.load(given, weights_only=False)
    with joined():
        run = prepare_run(config, arrays, OwnBody())
        modules = run.state.nets.modules
        torch.save({name: m.state_dict() for name, m in modules.items()}, f"{out}.{world.rank()}")


def exchange():
    """Everything that ranks exchange, against what one process has."""
    with joined():
        world.form(torch.device("cpu"), 20)
        size, rank, stream = world.size(), world.rank(), torch.Generator().manual_seed(0)
        whole = {
            "floats": torch.rand(12, 3, generator=stream),
            "labels": torch.randint(9, (12,), generator=stream),
            "flags": torch.rand(12, generator=stream) < 0.5,
            "doubles": torch.rand(12, 2, 2, generator=stream).double(),
        }
        own = [tensors.own_rows(tensor) for tensor in whole.values()]
        for found, wanted in zip(tensors.gather_rows(*own), whole.values(), strict=True):
            assert found.dtype == wanted.dtype
            assert torch.equal(found, wanted)
        plan = torch.arange(24).view(2, 12)
        assert torch.equal(tensors.own_rows(plan, dim=1), plan[:, rank::size])
        assert tensors.count_own_rows(7) == len(range(12)[:7][rank::size])

        weight = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)  # in all ranks' losses
        rows = tensors.gather_with_gradient(own[0] * weight)
        assert torch.allclose(rows, whole["floats"] * weight)
        ((rank + 1) * rows.square().sum()).backward()
        expected = torch.zeros(3)
        for other in range(size):  # the part of the sum of all losses that comes from own rows
            expected += (other + 1) * 2 * weight.detach() * own[0].square().sum(dim=0)
        assert torch.allclose(weight.grad, expected)

        part = tensors.divide_over_ranks(torch.tensor(1.0 + rank), torch.tensor(2 * rank))
        assert tensors.sum_over_ranks(part).item() / size == (1 + 2 + 3) / (0 + 2 + 4)
        assert tensors.divide_over_ranks(torch.tensor(0.0), torch.tensor(0)).item() == 0
        shared = [torch.full((2, 3), float(rank)).T, torch.tensor(rank > 0), torch.zeros(0)]
        tensors.share(shared)
        assert [s.tolist() for s in shared] == [[[0, 0]] * 3, False, []]
        images = torch.full((2, 1, 3, 3), float(rank)).to(memory_format=torch.channels_last)
        tensors.share([images])
        assert not images.any()
        assert world.any_rank(rank == 1, False) == (True, False)
        assert world.slowest(float(rank)) == size - 1
