"""Jobs: every run that a target needs, once, with the settings of `concont train`."""

import pytest

from concont.errors import UsageError
from concont.paper.plan import BUDGETS, TARGETS, cells_of, choose_cells, most_wanted, plan
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
    cells = [(cell, job.settings.train.seed) for job, cells in jobs.items() for cell in cells]
    assert sorted(map(repr, cells)) == sorted(
        repr((cell, seed)) for cell in cells_of("all") for seed in (1, 2, 3)
    )
    tables = {"table1", "table4", "table5"}
    shared = [job for job, cells in jobs.items() if {c.table for c in cells} >= tables]
    assert [job.name for job in shared] == [
        f"ConCont, cifar10, 10%, q = 0.5, seed {seed}" for seed in (1, 2, 3)
    ]
    assert {job.settings.train.epochs for job in jobs} == {800}


def test_rows_and_columns_are_chosen():
    table = cells_of("table1")
    assert {c.method for c in choose_cells(table, ["DPLL*", "PARM"])} == {"DPLL*", "PARM"}
    found = choose_cells(table, [], ["cifar10:0.1:0.5", "cifar10::0.7"])
    assert {(c.labeled, c.q) for c in found} == {(0.1, 0.5), (0.1, 0.7), (0.2, 0.7)}
    assert len(choose_cells(table, ["ConCont"], ["cifar10:0.2"])) == 4
    for wrong in ("cifar10:x", "cifar10:0.1:0.5:1"):
        with pytest.raises(UsageError, match="write data:share:q"):
            choose_cells(table, [], [wrong])
    with pytest.raises(UsageError, match="no row 'DPL'"):
        choose_cells(table, ["DPL"])
    with pytest.raises(UsageError, match="no cell in svhn"):
        choose_cells(table, [], ["svhn"])


def test_seeds_seed_everything():
    one, two = plan(cells_of("table4")[:1], BUDGETS["short"], [4, 7, 4])
    assert [(j.settings.data.seed, j.settings.train.seed) for j in (one, two)] == [(4, 4), (7, 7)]
    assert one.key != two.key
    assert one.settings.train.epochs == 60


def test_digits_stand_in_once_a_row():
    jobs = plan(cells_of("all"), BUDGETS["smoke"])
    assert {cell.data for cells in jobs.values() for cell in cells} == {"digits"}
    assert {job.settings.data.source for job in jobs} == {"digits"}
    rows = {cell.recipe.partition("+")[2] for cell in cells_of("all")}
    assert len(jobs) == len(rows)
    assert {job.settings.method.name for job in jobs} == {
        *("concont", "dpll", "pico", "supervised", "sspl", "parm")
    }


def test_named_data_is_looked_for_where_it_is_said_to_lie(tmp_path):
    (job,) = plan(cells_of("table4")[:1], BUDGETS["short"], root=str(tmp_path))
    (other,) = plan(cells_of("table4")[:1], BUDGETS["short"])
    assert (job.settings.data.root, other.settings.data.root) == (str(tmp_path), None)
    assert job.key == other.key  # wherever it lies


def test_what_is_wanted_most_comes_first():
    planned = plan(cells_of("all"), BUDGETS["paper"])
    jobs = most_wanted(planned)
    assert set(jobs) == set(planned)
    seeds = [job.settings.train.seed for job in jobs]
    assert seeds == sorted(seeds)
    first = jobs[: len(jobs) // 3]
    assert {c.table for c in planned[first[0]]} >= {"table4"}
    core = [
        any(c.table == "table4" or c.method in ("ConCont", "Fully Supervised") for c in cells)
        for cells in map(planned.get, first)
    ]
    assert core == sorted(core, reverse=True)
