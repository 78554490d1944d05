from types import SimpleNamespace

import numpy as np
import pytest
import torch

from concont import memory
from concont.config.resolve import resolve
from concont.errors import UsageError
from concont.nets.network import build, count_weights
from concont.training.size import refuse_too_large


def check(problem_rows=50, classes=3, **asked):
    settings = resolve({"data": {"source": "digits"}, **asked})
    held = SimpleNamespace(candidates=np.ones((problem_rows, classes), bool), classes=("a",) * 3)
    refuse_too_large(settings, (1, 8, 8), held)


@pytest.mark.parametrize("name", ["small", "narrow-resnet18", "resnet18"])
def test_weights_are_counted_as_they_are_made(name):
    width = {} if name == "resnet18" else {"width": 8}
    model = resolve({"data": {"source": "digits"}, "model": {"name": name, **width}}).model
    moments = torch.zeros(1), torch.ones(1)
    made = build(model, (1, 8, 8), 3, moments, seed=1)
    assert count_weights(model, (1, 8, 8), 3) == sum(p.numel() for p in made.parameters())


def test_a_network_that_does_not_fit_is_refused_before_it_is_made():
    with pytest.raises(UsageError, match=r"the network takes .* TB of memory; .* model\.width"):
        check(model={"name": "small", "width": 60_000})


def test_a_queue_that_does_not_fit_is_refused(monkeypatch):
    monkeypatch.setattr(memory, "count_memory", lambda: 10**9)
    check(method={"queue": 2**20})
    with pytest.raises(UsageError, match=r"what concont remembers takes .* method\.queue"):
        check(method={"queue": 2**23})


@pytest.mark.parametrize("name", ["dpll", "pico", "proden", "lws"])
def test_tables_of_rows_and_classes_count(name, monkeypatch):
    monkeypatch.setattr(memory, "count_memory", lambda: 10**9)
    check(method={"name": name})
    with pytest.raises(UsageError, match=f"what {name} remembers takes"):
        check(10**6, 1000, method={"name": name})


def test_a_network_of_ones_own_is_not_counted():
    settings = resolve({"data": {"source": "digits"}, "model": {"name": "small", "width": 60_000}})
    held = SimpleNamespace(candidates=np.ones((5, 3), bool), classes=("a",) * 3)
    refuse_too_large(settings, (1, 8, 8), held, torch.nn.Sequential())
