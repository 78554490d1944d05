import pytest
import torch

from concont.bench.timing import (
    N_BLOCKS,
    count_flops,
    time_call_s,
    time_matmul_tflops,
    time_steady_ms,
)

CPU = torch.device("cpu")


@pytest.fixture
def clock(monkeypatch):
    """What `time.perf_counter` reads, moved by hand."""
    now = [100.0]
    monkeypatch.setattr("concont.bench.timing.time.perf_counter", lambda: now[0])
    return now


def test_a_call_is_timed(clock):
    def call():
        clock[0] += 0.25

    assert time_call_s(call, CPU) == 0.25


def test_steady_time_is_the_median_over_blocks_after_a_first_call(clock):
    calls = []

    def call():
        calls.append(1)
        # The first call compiles, and one block has a hiccup.
        clock[0] += {1: 5.0, 3: 0.2}.get(len(calls), 0.002)

    assert time_steady_ms(call, CPU, calls=3) == pytest.approx(2)
    assert len(calls) == 1 + 3 * N_BLOCKS


def test_the_matrix_rate_counts_a_multiplication_and_an_addition(monkeypatch):
    monkeypatch.setattr("concont.bench.timing.time_steady_ms", lambda *_, calls: 4.0)
    assert time_matmul_tflops(CPU) == pytest.approx(2 * 1024**3 / 4e-3 / 1e12)


def test_flops_of_products_and_convolutions_are_counted_forward_and_backward():
    weight = torch.randn(5, 7, requires_grad=True)
    images, filters = torch.randn(2, 3, 8, 8), torch.randn(4, 3, 3, 3, requires_grad=True)

    def call():
        (torch.randn(11, 5) @ weight).sum().backward()
        torch.nn.functional.conv2d(images, filters).sum().backward()

    product = 2 * 11 * 5 * 7
    convolution = 2 * 2 * 4 * 6 * 6 * 3 * 9
    assert count_flops(call) == pytest.approx(2 * product + 2 * convolution)
