import logging

import pytest

from concont.bench import report
from concont.bench.report import resolve_methods, time_method, time_methods
from concont.config.resolve import resolve
from concont.errors import UsageError
from concont.methods import method_names

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
TINY = ["model.name=small", "model.width=4", "train.device=cpu"]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["dpll", "pico"])
def test_methods_that_learn_from_labelled_rows_alone_have_a_plain_way_too(method, monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: range(0))  # no workers
    (settings,) = resolve_methods(method, {"train": {"batch_size": 8}}, "cifar10", TINY)
    figures = time_method(settings, rows=40, size=8, calls=1, plain=True)
    assert (figures["method"], figures["batch"]) == (method, 8)
    assert figures["plain_step_ms"] > 0


@pytest.mark.parametrize(
    ("flags", "recipe", "batch"),
    [({}, "cifar10", 256), ({"train": {"batch_size": 32}}, "cifar10", 32), ({}, "digits", 64)],
)
def test_all_methods_have_the_batch_of_the_recipe_or_the_one_asked_for(flags, recipe, batch):
    each = resolve_methods("dpll, concont ,pico", flags, recipe, TINY)
    assert [settings.method.name for settings in each] == ["dpll", "concont", "pico"]
    assert [settings.train.batch_size for settings in each] == [batch] * 3
    assert each[0].views == resolve({"method": {"name": "dpll"}}, recipe).views


def test_all_methods_can_be_asked_for_and_none_comes_twice():
    assert [s.method.name for s in resolve_methods(" all ", {}, "cifar10", TINY)] == method_names()
    assert [s.method.name for s in resolve_methods("lws,lws", {}, "cifar10", TINY)] == ["lws"]


@pytest.mark.parametrize("words", ["pico,sspl", "pico,", "", "[1"])
def test_unknown_methods_are_named_in_one_line(words):
    with pytest.raises(UsageError, match="no method '.*'; there are concont, dpll, ") as caught:
        resolve_methods(words, {}, "cifar10", TINY)
    assert "\n" not in str(caught.value)


def test_the_machine_is_measured_once_and_a_smaller_batch_is_said_once(monkeypatch, caplog):
    rates = iter([7.0])
    monkeypatch.setattr(report, "time_matmul_tflops", lambda _: next(rates))
    each = resolve_methods("partial,lws", {"train": {"batch_size": 64}}, "cifar10", TINY)
    with caplog.at_level(logging.WARNING, "concont"):
        rows = time_methods(each, rows=20, size=8, calls=1)
    assert len(caplog.messages) == 1
    assert "20 rows, not 64" in caplog.messages[0]
    assert [(row["method"], row["batch"]) for row in rows] == [("partial", 20), ("lws", 20)]
    assert all(set(FIXED) <= set(row) and row["matmul_tflops"] == 7.0 for row in rows)
    assert rows[0]["environment"] == rows[1]["environment"]


@pytest.mark.slow
def test_the_plain_way_stands_beside_the_step(monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: range(2))
    monkeypatch.setattr(report, "PREFETCH", 1)
    settings = resolve(
        {
            "data": {"labeled": 0.5, "ambiguity": 0.3},
            "model": {"name": "small", "width": 4},
            "train": {"batch_size": 16, "device": "cpu"},
        }
    )
    figures = time_method(settings, rows=40, size=8, calls=1, plain=True)
    assert set(FIXED) <= set(figures)
    assert figures["peak_memory_gb"] is None
    assert figures["plain_workers"] == 2
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
    figures = time_method(settings, rows=40, size=8, calls=1, plain=False)
    assert (figures["plain_step_ms"], figures["plain_views_ms"]) == (None, None)
    assert figures["epoch_s"] == pytest.approx(50_000 // 16 * figures["step_ms"] / 1000)
