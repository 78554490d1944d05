"""Timing that waits for the device, and what the machine itself can do."""

import statistics
import time
from collections.abc import Callable

import torch

BLOCKS = 5


def wait(device: torch.device) -> None:
    """Until the device has done all that it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def seconds(call: Callable[[], object], device: torch.device) -> float:
    """How long one call takes, until its work is done."""
    wait(device)
    began = time.perf_counter()
    call()
    wait(device)
    return time.perf_counter() - began


def steady_ms(call: Callable[[], object], device: torch.device, calls: int) -> float:
    """Milliseconds of a call in steady state: the median over blocks of so many calls."""

    def block() -> None:
        for _ in range(calls):
            call()

    call()
    return statistics.median(seconds(block, device) for _ in range(BLOCKS)) / calls * 1000


def matmul_tflops(device: torch.device) -> float:
    """The machine's own rate: a large product of matrices, bfloat16 on a GPU, else float32."""
    on_gpu = device.type == "cuda"
    size, dtype = (8192, torch.bfloat16) if on_gpu else (1024, torch.float32)
    a, b = (torch.randn(size, size, device=device).to(dtype) for _ in range(2))
    ms = steady_ms(lambda: a @ b, device, calls=20 if on_gpu else 5)
    return 2 * size**3 / ms / 1e9


def count_flops(call: Callable[[], object]) -> int:
    """Floating-point operations of the matrix products and convolutions in a call."""
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        call()
    return int(counter.get_total_flops())
