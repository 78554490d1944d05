"""Compares the gradient of the fast step (compiled) and of the eager one with float64.

    python benchmarks/fast_equals_plain.py [--steps 20] [--batch 256] [--float32] [--set a.b=v ...]

One state, one batch, the same views: before the first step and after `--steps` eager ones, when
keys are queued and some rows are confident. The error of a gradient is its distance from the one
of a float64 network, as a share of that one's length. Both ways round in bfloat16 (float32 with
TF32 off), only at different places, so the fast one may err 1.5 times as much as the eager one,
and no more; where float32 itself is all that is seen (1e-5), nothing is compared.
"""

import argparse
import json
import sys

import torch

from concont.augment.views import draw_uniforms
from concont.bench.step_timing import StepRunner, make_random_dataset, prepare_on_all_rows
from concont.config.resolve import resolve
from concont.training.recorder import describe_environment
from concont.training.step import Step

MAX_RATIO, FLOAT32_ERROR = 1.5, 1e-5


def compute_gradient(step, batch, precision):
    """The online network's gradient on this batch, in float64; nothing is changed."""
    modules = step.state.nets.modules
    network = modules["online"]
    kept = {name: {k: v.clone() for k, v in m.state_dict().items()} for name, m in modules.items()}
    for module in modules.values():
        module.mixed = precision == "bfloat16"
        module.to(torch.float64 if precision == "float64" else torch.float32)
    step.compute_losses(batch).total.backward()
    found = torch.cat([p.grad.double().flatten() for p in network.parameters()])
    network.zero_grad()
    for name, module in modules.items():
        module.float().load_state_dict(kept[name])  # running statistics too
    return found


def compare_gradients(eager, fast, runner, precision):
    """How far each way is from float64."""
    index, images = next(runner.batches)
    settings, state = eager.settings, eager.state
    uniforms = draw_uniforms(settings.views, settings.network_method.views, len(index), state.views)
    batch = eager.batch(index, eager.render_views(images, uniforms))
    exact = compute_gradient(eager, batch, "float64")
    ways = {
        "eager": compute_gradient(eager, batch, precision),
        "fast": compute_gradient(fast, batch, precision),
    }
    return {name: ((g - exact).norm() / exact.norm()).item() for name, g in ways.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--images", type=int, default=50_000)
    parser.add_argument("--recipe", default="cifar10")
    parser.add_argument("--float32", action="store_true")
    parser.add_argument("--set", action="append", default=[])
    options = parser.parse_args()
    settings = resolve({"train": {"batch_size": options.batch}}, options.recipe, options.set)
    if options.float32:
        torch.backends.cudnn.allow_tf32 = False
    run = prepare_on_all_rows(settings, make_random_dataset(options.images, 32))
    on_gpu = run.data.device.type == "cuda"
    precision = "bfloat16" if on_gpu and not options.float32 else "float32"
    runner = StepRunner(run, fast=False)
    fast = Step(settings, run.state, run.data, fast=True)
    errors = {"at the start": compare_gradients(runner.step, fast, runner, precision)}
    for module in run.state.nets.modules.values():
        module.mixed = precision == "bfloat16"
    for _ in range(options.steps):
        runner()
    errors[f"after {options.steps} steps"] = compare_gradients(runner.step, fast, runner, precision)
    print(
        json.dumps(
            {
                "precision": precision,
                "batch": options.batch,
                "gradient_errors": errors,
                "environment": describe_environment(run.data.device),
            },
            indent=1,
        )
    )
    sys.exit(any(e["fast"] > max(MAX_RATIO * e["eager"], FLOAT32_ERROR) for e in errors.values()))


if __name__ == "__main__":
    main()
