"""Ours beside the paper's: only runs with exactly a cell's settings count."""

import json
from pathlib import Path

import pytest

from concont.paper.comparison import compare
from concont.paper.plan import cells_of
from concont.sweep.record import read

WHOLE, *PARTS = [cell for cell in cells_of("table4") if cell.data == "cifar10"]


def test_an_empty_ledger_leaves_blanks():
    rows = compare(cells_of("all"), [])
    assert len(rows) == len(cells_of("all"))
    names = ("table", "data", "labeled", "q", "method", "paper_mean", "paper_std", "ours_mean")
    assert list(rows[0]) == [*names, "ours_std", "seeds", "epochs", "recipe"]
    assert all(row["ours_mean"] is row["seeds"] is row["epochs"] is None for row in rows)


def test_seeds_are_averaged(made_up):
    found = [made_up(WHOLE, seed, 60, accuracy) for seed, accuracy in ((1, 0.5), (2, 0.6))]
    row, other = compare([WHOLE, PARTS[0]], found)
    assert row["ours_mean"] == pytest.approx(55)
    assert row["ours_std"] == pytest.approx(7.0711, abs=1e-4)
    assert (row["seeds"], row["epochs"]) == ([1, 2], 60)
    assert (row["paper_mean"], row["paper_std"]) == (90.46, 0.16)
    assert other["ours_mean"] is None


def test_the_longest_runs_stand_for_a_cell(made_up):
    found = [made_up(WHOLE, 1, 800, 0.9), made_up(WHOLE, 1, 60, 0.7), made_up(WHOLE, 2, 60, 0.8)]
    (row,) = compare([WHOLE], found)
    assert (row["ours_mean"], row["ours_std"], row["seeds"], row["epochs"]) == (90, None, [1], 800)


def test_another_setting_under_the_same_recipe_does_not_count(made_up):
    record = made_up(WHOLE)
    record["settings"]["optimizer"]["lr"] = 0.02
    assert compare([WHOLE], [record])[0]["ours_mean"] is None


@pytest.mark.parametrize("seed", ["data", "train"])
def test_both_seeds_must_be_the_runs(made_up, seed):
    record = made_up(WHOLE)
    record["settings"][seed]["seed"] = 7
    assert compare([WHOLE], [record])[0]["ours_mean"] is None


def test_what_a_recipe_is_called_does_not_matter(made_up):
    """A run whose settings are a cell's, put together by hand."""
    cell = PARTS[0]
    record = made_up(cell, accuracy=0.4, recipe=WHOLE.recipe)
    record["settings"]["recipe"] = WHOLE.recipe
    row, other = compare([cell, WHOLE], [record])
    assert (row["ours_mean"], other["ours_mean"]) == (40, None)


def test_what_was_not_evaluated_or_cannot_be_read_leaves_a_blank(made_up):
    records = [
        made_up(WHOLE, accuracy_last=None, accuracy_best=None),
        made_up(WHOLE, settings={"train": {"speed": 7}}),
    ]
    assert compare([WHOLE], records)[0]["ours_mean"] is None


def test_of_two_records_of_one_run_the_first_counts(made_up):
    records = [made_up(WHOLE, accuracy=0.5), made_up(WHOLE, accuracy=0.6)]
    assert compare([WHOLE], records)[0]["ours_mean"] == 50


def test_a_bound_needs_no_share(made_up):
    (cell,) = [c for c in cells_of("table3") if c.method == "Fully Supervised"]
    (row,) = compare([cell], [made_up(cell, accuracy=0.7)])
    assert (row["ours_mean"], row["labeled"], row["q"]) == (70, None, None)


def test_the_projects_own_records_fill_the_cells_that_they_always_filled():
    """As they did before sweeps were parted from the paper: filled_cells.json was written then."""
    ledger = read(Path(__file__).parents[2] / "benchmarks" / "results" / "ledger.json")
    names = ("table", "data", "labeled", "q", "method", "ours_mean", "seeds", "epochs")
    rows = [row for row in compare(cells_of("all"), ledger) if row["ours_mean"] is not None]
    expected = json.loads((Path(__file__).parent / "filled_cells.json").read_text())
    assert (len(ledger), len(expected)) == (97, 62)
    assert [[row[name] for name in names] for row in rows] == expected
