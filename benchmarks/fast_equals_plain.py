"""Compares the fast step (compiled, captured) with the eager one: one state, the same draws.

    python benchmarks/fast_equals_plain.py [--steps 20] [--batch 256] [--float32] [--set a.b=v ...]

Prints how far losses and weights are apart after each step and fails beyond the tolerance. In
bfloat16 the two round at different places: 2 % of the loss, 2 % of the weights' norm. In float32
(TF32 off) 0.1 % of both. A pseudo-label that flips would show as a jump.
"""

import argparse
import json
import sys

import torch

from concont.bench.product import Runner, make_job, random_images
from concont.config import resolve
from concont.engine.record import environment

TOLERANCE = {"bfloat16": 2e-2, "float32": 1e-3}


def follow(settings, data, steps, float32, fast):
    """Loss after each step, and the weights at the end."""
    job = make_job(settings, data)
    for network in job.state.nets.modules.values():
        network.mixed = not float32
    run, losses = Runner(job, fast), []
    for _ in range(steps):
        run()
        losses.append(job.state.meter.read()["loss"])
    weights = [p.detach().flatten() for p in job.state.nets.modules["online"].parameters()]
    return torch.tensor(losses), torch.cat(weights)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--images", type=int, default=50_000)
    parser.add_argument("--recipe", default="cifar10")
    parser.add_argument("--float32", action="store_true")
    parser.add_argument("--set", action="append", default=[])
    asked = parser.parse_args()
    settings = resolve({"train": {"batch_size": asked.batch}}, asked.recipe, asked.set)
    data = random_images(asked.images, 32)
    if asked.float32:
        torch.backends.cudnn.allow_tf32 = False
    plain_losses, plain = follow(settings, data, asked.steps, asked.float32, fast=False)
    fast_losses, fast = follow(settings, data, asked.steps, asked.float32, fast=True)
    apart = ((fast_losses - plain_losses) / plain_losses).abs()
    kind = "float32" if asked.float32 else "bfloat16"
    result = {
        "precision": kind,
        "steps": asked.steps,
        "batch": asked.batch,
        "loss_apart": apart.tolist(),
        "weights_apart": ((fast - plain).norm() / plain.norm()).item(),
        "tolerance": TOLERANCE[kind],
        "environment": environment(fast.device),
    }
    print(json.dumps(result, indent=1))
    worst = max(apart.max().item(), result["weights_apart"])
    sys.exit(0 if worst <= TOLERANCE[kind] else 1)


if __name__ == "__main__":
    main()
