import pytest

from concont.bench.report import bench
from concont.config import resolve

FIXED = [
    "device",
    "batch",
    "step_ms",
    "plain_step_ms",
    "views_ms",
    "plain_views_ms",
    "tflops",
    "matmul_tflops",
    "first_step_s",
    "peak_memory_gb",
]


@pytest.mark.slow
def test_the_plain_way_stands_beside_the_step():
    settings = resolve(
        {
            "data": {"labeled": 0.5, "ambiguity": 0.3},
            "model": {"name": "small", "width": 4},
            "train": {"batch_size": 16, "device": "cpu"},
        }
    )
    figures = bench(settings, rows=40, size=16, calls=2, plain=True)
    assert set(FIXED) <= set(figures)
    assert figures["peak_memory_gb"] is None
    assert figures["plain_step_ms"] == figures["plain_float32_step_ms"] > 0
    assert figures["plain_views_ms"] > 0
    assert figures["plain_float32_network_ms"] > 0
    assert figures["plain_flops"] > 0
    assert "plain_bfloat16_step_ms" not in figures
    assert figures["images_per_s"] == pytest.approx(16 / figures["step_ms"] * 1000)


def test_the_plain_way_can_be_left_out():
    settings = resolve(
        {"model": {"name": "small", "width": 4}, "train": {"batch_size": 16, "device": "cpu"}}
    )
    figures = bench(settings, rows=40, size=8, calls=1, plain=False)
    assert (figures["plain_step_ms"], figures["plain_views_ms"]) == (None, None)
    assert figures["epoch_s"] == pytest.approx(50_000 // 16 * figures["step_ms"] / 1000)
