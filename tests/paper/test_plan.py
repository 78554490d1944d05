"""Jobs: every run that a target needs, once, with the settings of `concont train`."""

import subprocess
import sys

import pytest
import yaml

from concont.config.resolve import check
from concont.errors import UsageError
from concont.paper.plan import BUDGETS, TARGETS, cells_of, choose, most_wanted, plan
from concont.paper.tables import published


def test_every_target_has_cells():
    for target in TARGETS:
        assert cells_of(target)
    assert set(published()) < set(cells_of("all"))
    with pytest.raises(UsageError, match="no 'table7' in the paper"):
        cells_of("table7")


def test_a_run_that_several_cells_share_is_one_job():
    jobs = plan(cells_of("all"), BUDGETS["paper"])
    assert len({job.key for job in jobs}) == len(jobs)
    cells = [(cell, job.seed) for job in jobs for cell in job.cells]
    assert sorted(map(repr, cells)) == sorted(
        repr((cell, seed)) for cell in cells_of("all") for seed in (1, 2, 3)
    )
    shared = [job for job in jobs if {c.table for c in job.cells} >= {"table1", "table4", "table5"}]
    assert [job.cells[0].method for job in shared] == ["ConCont"] * 3
    assert {job.settings.train.epochs for job in jobs} == {800}


def test_rows_and_columns_are_chosen():
    table = cells_of("table1")
    assert {c.method for c in choose(table, ["DPLL*", "PARM"])} == {"DPLL*", "PARM"}
    found = choose(table, [], ["cifar10:0.1:0.5", "cifar10::0.7"])
    assert {(c.labeled, c.q) for c in found} == {(0.1, 0.5), (0.1, 0.7), (0.2, 0.7)}
    assert len(choose(table, ["ConCont"], ["cifar10:0.2"])) == 4
    for wrong in ("cifar10:x", "cifar10:0.1:0.5:1"):
        with pytest.raises(UsageError, match="write data:share:q"):
            choose(table, [], [wrong])
    with pytest.raises(UsageError, match="no row 'DPL'"):
        choose(table, ["DPL"])
    with pytest.raises(UsageError, match="no cell in svhn"):
        choose(table, [], ["svhn"])


def test_seeds_seed_everything():
    one, two = plan(cells_of("table4")[:1], BUDGETS["short"], [4, 7, 4])
    assert [(j.settings.data.seed, j.settings.train.seed) for j in (one, two)] == [(4, 4), (7, 7)]
    assert one.key != two.key
    assert one.settings.train.epochs == 60


def test_digits_stand_in_once_a_row():
    jobs = plan(cells_of("all"), BUDGETS["smoke"])
    assert {cell.data for job in jobs for cell in job.cells} == {"digits"}
    assert {job.settings.data.source for job in jobs} == {"digits"}
    rows = {cell.recipe.partition("+")[2] for cell in cells_of("all")}
    assert len(jobs) == len(rows)
    assert {job.settings.method.name for job in jobs} == {
        *("concont", "dpll", "pico", "supervised", "sspl", "parm")
    }


def test_the_command_of_a_job_has_its_settings():
    for cell in (cells_of("table4")[2], cells_of("table3")[-1]):
        (job,) = plan([cell], BUDGETS["short"], [3], root="somewhere")
        words = [sys.executable, "-m", "concont", "train", *job.arguments, "--print-config"]
        shown = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        assert check(yaml.safe_load(shown)).hash() == job.key
        assert "--root" in job.arguments


def test_what_is_wanted_most_comes_first():
    jobs = most_wanted(plan(cells_of("all"), BUDGETS["paper"]))
    assert [job.seed for job in jobs] == sorted(job.seed for job in jobs)
    first = jobs[: len(jobs) // 3]
    assert {c.table for c in first[0].cells} >= {"table4"}
    core = [
        any(c.table == "table4" or c.method in ("ConCont", "Fully Supervised") for c in job.cells)
        for job in first
    ]
    assert core == sorted(core, reverse=True)
