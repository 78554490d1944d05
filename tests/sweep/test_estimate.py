"""How long a run will take."""

import pytest

from concont.config.resolve import resolve
from concont.paper.plan import cells_of, settings_of
from concont.sweep.estimate import (
    EVALUATION,
    H200,
    H200_RATES,
    LOAD,
    START,
    count_steps,
    device_name,
    estimate_seconds,
    measure_rates,
)


def of(recipe, **data):
    return resolve({"data": {"source": "cifar10", **data}, "train": {"epochs": 60}}, recipe)


def test_steps_are_those_that_runs_took():
    """As in benchmarks/results/cifar10-methods-60-epochs.json."""
    assert count_steps(of("cifar10")) == 11_700
    assert count_steps(of("cifar10+dpll")) == 4_680
    assert count_steps(of("cifar10+dpll-star")) == 46_860
    assert count_steps(of("cifar10+pico")) == 1_140
    assert count_steps(of("cifar10+fully-supervised")) == 11_700
    assert count_steps(of("cifar10+pico", labeled=2_560)) == 600


def test_what_is_left_of_a_run_that_was_begun():
    assert count_steps(of("cifar10"), epochs_done=50) == 1_950


def test_time_is_start_steps_and_evaluations():
    concont = ("concont", 256, "resnet18")
    expected = START + 11_700 * H200_RATES[concont] + 12 * EVALUATION
    assert estimate_seconds(of("cifar10"), H200_RATES) == pytest.approx(expected)
    assert estimate_seconds(
        of("cifar10"), {concont: 1e-3}, epochs_done=50, start=20.0
    ) == pytest.approx(20.0 + 1.95 + 2 * EVALUATION)
    assert estimate_seconds(of("cifar10"), {}) is None
    assert (
        estimate_seconds(resolve({"data": {"source": "digits"}}), H200_RATES) is None
    )  # another network
    assert (
        estimate_seconds(of("cifar10+sspl"), H200_RATES) == LOAD + H200_RATES["sspl", 0, "cifar10"]
    )


def test_every_job_of_the_paper_with_a_network_was_timed_on_an_h200():
    for cell in cells_of("all"):
        settings = settings_of(cell, 1, None)
        assert (estimate_seconds(settings, H200_RATES) is not None) or not settings.has_epochs


def test_rates_are_read_off_runs_of_the_same_device(made_up):
    cell = cells_of("table4")[0]
    took = {"steps": 100, "batch_size": 256}
    records = [
        made_up(cell, **took, seconds_by={"steps": 4.0}),
        made_up(cell, **took, seconds_by={"steps": 2.0}),
        made_up(cell, **took, seconds_by={"steps": 3.0}),
        made_up(cell, **took, seconds_by={"steps": 1.0}, environment={"device": "another"}),
        made_up(cell),
    ]
    concont = ("concont", 256, "resnet18")
    assert measure_rates(records, "a GPU") == {concont: pytest.approx(0.02)}
    assert measure_rates([], "a GPU") == {}
    assert isinstance(device_name(), str)


def test_what_was_timed_on_an_h200_holds_there_unless_a_run_was_faster(made_up):
    cell = cells_of("table4")[0]
    assert measure_rates([], H200) == H200_RATES
    for took, expected in ((1.0, H200_RATES["concont", 256, "resnet18"]), (0.1, 1e-3)):
        record = made_up(
            cell,
            steps=100,
            batch_size=256,
            seconds_by={"steps": took},
            environment={"device": H200},
        )
        assert measure_rates([record], H200)["concont", 256, "resnet18"] == pytest.approx(expected)


def test_of_fits_without_a_network_the_slowest_counts(made_up):
    cell = next(cell for cell in cells_of("table1") if cell.method == "SSPL")
    records = [made_up(cell, epochs=None, seconds=took) for took in (5.0, 9.0, 7.0)]
    assert measure_rates(records, "a GPU") == {("sspl", 0, "cifar10"): 9.0}  # not of other data
