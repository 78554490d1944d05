"""Where the time of a method's step goes on a GPU: its kernels, summed by name, as JSON.

    python benchmarks/kernels.py pico > kernels.json

Two streams overlap, so the kernels add up to more than the time in which the GPU is busy. With the
profiler on, a step takes longer than `concont bench` says.
"""

import argparse
import json
from collections import Counter

import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

from concont.bench.step_timing import StepRunner, make_random_dataset, prepare_on_all_rows
from concont.config.registry import registered_names
from concont.config.resolve import resolve
from concont.training.recorder import describe_environment

STEPS = 10
N_SHOWN = 60  # kernels, those that take longest


def main() -> None:
    """Warm up, then watch some steps at batch 256."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("method", choices=sorted(registered_names()))
    method = parser.parse_args().method
    if not torch.cuda.is_available():
        parser.exit(2, "kernels are watched on a GPU; there is none here\n")
    settings = resolve({"train": {"batch_size": 256}, "method": {"name": method}}, "cifar10", [])
    step = StepRunner(prepare_on_all_rows(settings, make_random_dataset(50_000, 32)))
    for _ in range(8):  # until it is compiled and captured
        step()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as profiled:
        for _ in range(STEPS):
            step()
        torch.cuda.synchronize()
    kernels = [event for event in profiled.events() if event.device_type == DeviceType.CUDA]
    spans = sorted((k.time_range.start, k.time_range.end) for k in kernels)
    microseconds: Counter[str] = Counter()
    calls: Counter[str] = Counter()
    for kernel in kernels:
        microseconds[kernel.name[:110]] += kernel.time_range.elapsed_us()
        calls[kernel.name[:110]] += 1
    longest = [
        {"us": round(us / STEPS, 1), "calls": calls[name] / STEPS, "name": name}
        for name, us in microseconds.most_common(N_SHOWN)
    ]
    record = {
        "method": method,
        "batch": 256,
        "kernels": len(kernels) / STEPS,
        "sum_us": round(sum(microseconds.values()) / STEPS, 1),
        "busy_us": round(measure_union(spans) / STEPS, 1),
        "span_us": round((max(end for _, end in spans) - spans[0][0]) / STEPS, 1),
        "longest": longest,
        "environment": describe_environment(torch.device("cuda")),
    }
    print(json.dumps(record, indent=1))


def measure_union(spans: list[tuple[float, float]]) -> float:
    """Length of the union of spans, which come by their start."""
    total, reached = 0.0, spans[0][0]
    for start, end in spans:
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total


if __name__ == "__main__":
    main()
