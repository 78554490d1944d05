import copy
from dataclasses import replace

import pytest
import torch

from concont.config.resolve import resolve
from concont.data.sources import from_arrays
from concont.errors import UsageError
from concont.methods import method_names
from concont.runs.folder import RunFolder
from concont.training import pace as pace_module
from concont.training.pace import (
    ADVICE,
    Pace,
    announce,
    describe,
    fit_into,
    in_words,
    measure_pace,
)
from concont.training.prepare import prepare
from concont.training.step import Step
from concont.training.trainers import reopen_run


def start(config, folder, arrays):
    return prepare(resolve(config), RunFolder(folder), from_arrays(arrays))


def finish(run):
    for _ in run.execute():
        pass
    return run.state.state_dict()


def same(one, other):
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[k], other[k]) for k in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other


CLOCKS = ("seconds", "spent")


def without_clocks(state):
    return {name: value for name, value in state.items() if name not in CLOCKS}


@pytest.mark.parametrize("method", [n for n in method_names() if n != "supervised"])
def test_a_timed_run_ends_as_an_untimed_one_bit_for_bit(method, tmp_path, toy_config, toy_arrays):
    config = {**toy_config, "method": {"name": method}}
    plain, timed = (start(config, tmp_path / name, toy_arrays) for name in ("plain", "timed"))
    timed, pace = measure_pace(timed)
    assert pace.step > 0
    assert timed.state.step == 0
    assert timed.state.seconds > 0  # its time counts
    assert same(without_clocks(finish(plain)), without_clocks(finish(timed)))
    rows = [run.folder.metrics() for run in (plain, timed)]
    for row in (*rows[0], *rows[1]):
        row.pop("seconds"), row.pop("images_per_s")
    assert rows[0] == rows[1]


def test_a_run_that_goes_on_is_timed_without_a_trace_too(tmp_path, toy_config, toy_arrays):
    folders = []
    for name in ("plain", "timed"):
        run = start(toy_config, tmp_path / name, toy_arrays)
        for progress in run.execute():
            if progress.step == 3:
                break
        folders.append(run.folder)
    ends = []
    for folder, timed in zip(folders, (False, True), strict=True):
        run = reopen_run(folder, from_arrays(toy_arrays))
        assert run.state.step == 2  # the last checkpoint
        before = copy.deepcopy(without_clocks(run.state.state_dict()))
        if timed:
            run, _ = measure_pace(run)
            assert same(before, without_clocks(run.state.state_dict()))
        ends.append(without_clocks(finish(run)))
    assert same(*ends)


def test_epochs_are_counted_against_a_slow_count():
    for step, evaluation, steps, every, seconds in (
        (0.5, 3.0, 7, 1, 100.0),
        (0.01, 0.0, 46, 5, 60.0),
        (0.2, 9.0, 3, 4, 55.0),
        (1.0, 1.0, 10, 1, 10.5),
    ):
        pace, slow = Pace(step, evaluation), 0
        while True:
            took = sum(
                steps * step + evaluation * (e % every == 0 or e == slow + 1)
                for e in range(1, slow + 2)
            )
            if took > seconds:
                break
            slow += 1
        assert pace.most_epochs(seconds, steps, every) == slow
        assert pace.seconds(slow, steps, every) <= seconds


def test_the_schedule_fits_the_minutes(tmp_path, toy_config, toy_arrays):
    run, _ = measure_pace(start(toy_config, tmp_path, toy_arrays))
    run.state.seconds = 6.0
    pace = Pace(step=1.0, evaluation=4.0)
    fitted = fit_into(run, pace, minutes=1)
    assert run.order.steps == 2
    # Of 54 seconds 25 epochs with one evaluation, which may take a tenth: so only at the end.
    assert (fitted.epochs, fitted.settings.train.evaluate_every) == (23, 19)
    assert pace.seconds(23, 2, 19) <= 54 < pace.seconds(24, 2, 19)
    quick = fit_into(run, Pace(step=1.0, evaluation=0.0), minutes=1)
    assert (quick.epochs, quick.settings.train.evaluate_every) == (27, 1)
    finish(fitted)
    assert [row["epoch"] for row in fitted.folder.metrics()] == [19, 23]
    assert fitted.step.clock[1] == 23
    with pytest.raises(UsageError, match="one epoch takes about 0.2 minutes"):
        fit_into(replace(run, folder=RunFolder("x")), pace, minutes=0.1)


def count_threads():
    number = torch.get_num_threads()
    return "1 thread" if number == 1 else f"{number} threads"


def test_the_line_tells_what_is_trained_on_what_and_for_how_long(tmp_path, toy_config, toy_arrays):
    run = start(toy_config, tmp_path, toy_arrays)
    line = describe(run, Pace(step=10.0, evaluation=1.0))
    weights = sum(p.numel() for p in run.state.nets.online.parameters())
    assert line == (
        f"concont trains small ({weights:,} weights) on {count_threads()} of the "
        f"CPU: 40 images of 8 x 8, {run.problem.n_partial} with candidate sets, 3 epochs of 2 "
        "steps; about 63 seconds"
    )
    assert describe(run, Pace(step=2000.0, evaluation=0.0)).splitlines()[1] == ADVICE
    timed, said = announce(run, minutes=0.05)
    assert f"{timed.epochs} epochs of 2 steps" in said
    assert timed.epochs > 3


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.2, "a second"),
        (89, "89 seconds"),
        (95, "1.6 minutes"),
        (1500, "25 minutes"),
        (86400, "24 hours"),
    ],
)
def test_times_are_told_as_a_person_would(seconds, words):
    assert in_words(seconds) == words


def test_steps_that_take_long_are_timed_once_and_quick_ones_often(
    tmp_path, toy_config, toy_arrays, monkeypatch
):
    run, calls = start(toy_config, tmp_path, toy_arrays), []
    monkeypatch.setattr(Step, "__call__", lambda *args, **kwargs: calls.append(1))
    measure_pace(run)
    assert len(calls) == 21
    calls.clear()
    monkeypatch.setattr(pace_module, "LONG_ENOUGH", -1.0)  # each is longer than enough
    measure_pace(run)
    assert len(calls) == 1
