"""Some steps of every method, on one process or on the ranks that torchrun starts; no test."""

import sys
from contextlib import nullcontext

import torch

from concont.config.resolve import resolve
from concont.data.sources import from_arrays
from concont.ranks import world
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


def take_steps(config, arrays):
    """Losses, and all that ten steps have changed, of this rank."""
    settings = resolve(config)
    run = prepare(settings, RunFolder("unused"), from_arrays(arrays))
    if "outside" in run.state.method_state:  # so that some sets are overruled this soon
        run.state.method_state["outside"].copy_(torch.arange(len(run.data.truth)) % 3 / 10)
        run.state.method_state["outside_limit"].fill_(0.15)
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


def main(given, out):
    """Each rank writes what it has found, beside the others."""
    from concont.ranks.ends import joined

    jobs, arrays = torch.load(given, weights_only=False)
    with joined() if world.is_started_as_rank() else nullcontext():
        found = {name: take_steps(job, arrays) for name, job in jobs.items()}
        torch.save(found, f"{out}.{world.rank()}")


if __name__ == "__main__":
    main(*sys.argv[1:])
