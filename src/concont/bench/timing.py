"""Timing that waits for the device, and what the machine itself can do."""

import statistics
import time
from collections.abc import Callable

import torch

N_BLOCKS = 5


def wait_for_device(device: torch.device) -> None:
    """Return when the device has done all that it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def time_call_s(call: Callable[[], object], device: torch.device) -> float:
    """Seconds that one call takes, until its work on the device is done."""
    wait_for_device(device)
    began = time.perf_counter()
    call()
    wait_for_device(device)
    return time.perf_counter() - began


def time_steady_ms(call: Callable[[], object], device: torch.device, calls: int) -> float:
    """Milliseconds of a call in steady state: the median over blocks of so many calls."""

    def call_block() -> None:
        for _ in range(calls):
            call()

    call()  # what only a first call does, such as compiling, is not timed
    # Waiting after each call would leave the device idle while the next one is prepared.
    blocks = (time_call_s(call_block, device) for _ in range(N_BLOCKS))
    return statistics.median(blocks) / calls * 1000


def time_matmul_tflops(device: torch.device) -> float:
    """The machine's own rate: a large product of matrices, bfloat16 on a GPU, else float32."""
    on_gpu = device.type == "cuda"
    size, dtype = (8192, torch.bfloat16) if on_gpu else (1024, torch.float32)
    a, b = (torch.randn(size, size, device=device).to(dtype) for _ in range(2))
    ms = time_steady_ms(lambda: a @ b, device, calls=20 if on_gpu else 5)
    return 2 * size**3 / ms / 1e9


def count_flops(call: Callable[[], object]) -> int:
    """Floating-point operations of the matrix products and convolutions in a call."""
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        call()
    return int(counter.get_total_flops())
