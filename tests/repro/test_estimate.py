"""How long a run will take."""

import pytest

from concont.config import resolve
from concont.repro.estimate import EVALUATION, START, STEP, device_name, rates, seconds, steps_of
from concont.repro.plan import cells_of, settings_of


def of(recipe, **data):
    return resolve({"data": {"source": "cifar10", **data}, "train": {"epochs": 60}}, recipe)


def test_steps_are_those_that_runs_took():
    """As in benchmarks/results/cifar10-methods-60-epochs.json."""
    assert steps_of(of("cifar10")) == 11_700
    assert steps_of(of("cifar10+dpll")) == 4_680
    assert steps_of(of("cifar10+dpll-star")) == 46_860
    assert steps_of(of("cifar10+pico")) == 1_140
    assert steps_of(of("cifar10+fully-supervised")) == 11_700
    assert steps_of(of("cifar10+pico", labeled=2_560)) == 600


def test_time_is_start_steps_and_evaluations():
    expected = START + 11_700 * STEP["concont", 256] + 12 * EVALUATION
    assert seconds(of("cifar10")) == pytest.approx(expected)
    assert seconds(of("cifar10"), {("concont", 256, "resnet18"): 1e-3}) == pytest.approx(
        START + 11.7 + 12 * EVALUATION
    )
    assert seconds(resolve({"data": {"source": "digits"}})) is None
    assert seconds(of("cifar10+sspl")) > 0


def test_every_job_of_the_paper_can_be_timed():
    for cell in cells_of("all"):
        assert seconds(settings_of(cell, 1, None)) > 0


def test_rates_are_read_off_runs_of_the_same_device(made_up):
    cell = cells_of("table4")[0]
    took = {"steps": 100, "batch_size": 256}
    records = [
        made_up(cell, **took, seconds_by={"steps": 4.0}),
        made_up(cell, **took, seconds_by={"steps": 2.0}),
        made_up(cell, **took, seconds_by={"steps": 3.0}),
        made_up(cell, **took, seconds_by={"steps": 9.0}, environment={"device": "another"}),
        made_up(cell),
    ]
    assert rates(records, "a GPU") == {("concont", 256, "resnet18"): pytest.approx(0.02)}
    assert isinstance(device_name(), str)
