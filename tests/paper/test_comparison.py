"""Ours beside the paper's: only runs with exactly a cell's settings count."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from concont.config.resolve import resolve
from concont.paper.comparison import compare, own_rows
from concont.paper.plan import cells_of
from concont.sweep.record import read
from sweeps import record_of

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


def own(recipe, accuracy=0.9, seed=1, epochs=60, data="cifar10", share=(0.1, 0.5), **sections):
    """A record of a run with a recipe of one's own."""
    labeled, q = share
    flags = {
        "data": {"source": data, "labeled": labeled, "ambiguity": q, "seed": seed},
        "train": {"seed": seed, "epochs": epochs},
    }
    merged = {name: {**flags.get(name, {}), **values} for name, values in sections.items()}
    settings = replace(resolve({**flags, "optimizer": {"lr": 0.03}, **merged}), recipe=recipe)
    return record_of(settings, accuracy)


def names(rows):
    return [(row["table"], row["data"], row["labeled"], row["q"], row["method"]) for row in rows]


@pytest.mark.parametrize(
    ("data", "table", "share"),
    [
        ("cifar10", "table1", (0.1, 0.5)),
        ("svhn", "table2", (0.2, 0.3)),
        ("cifar100", "table3", (0.4, 0.05)),
    ],
)
def test_a_recipe_of_ones_own_has_a_row_in_the_table_of_its_data(data, table, share):
    records = [
        own(f"{data}-strong", 0.8 + seed / 10, seed, data=data, share=share) for seed in (0, 1)
    ]
    (row,) = own_rows(cells_of("all"), records)
    assert names([row]) == [(table, data, *share, "ConCont (strong)")]
    assert (row["ours_mean"], row["ours_std"]) == (85, pytest.approx(7.0711, abs=1e-4))
    assert (row["seeds"], row["epochs"], row["recipe"]) == ([0, 1], 60, f"{data}-strong")
    assert row["paper_mean"] is row["paper_std"] is None
    assert list(row) == list(compare([WHOLE], [])[0])


def test_rows_are_called_by_method_and_recipe():
    records = [
        own("mine"),
        own("cifar10-strong+two-branch", method={"branches": "two"}),
        own("mine", method={"name": "pico"}),
        own("mine", method={"name": "lws"}),
    ]
    assert [row["method"] for row in own_rows(cells_of("table1"), records)] == [
        *("ConCont (mine)", "ConCont (strong+two-branch)", "PiCO (mine)", "lws (mine)")
    ]


def test_different_settings_under_one_name_are_never_averaged():
    """Each has a row, named by what it differs in; the longest runs of each count."""
    records = [
        own("mine", 0.5, method={"threshold": 0.7}),
        own("mine", 0.7, 2, method={"threshold": 0.7}),
        own("mine", 0.9, method={"threshold": 0.8}),
        own("mine", 0.95, epochs=90, method={"threshold": 0.8}),
    ]
    rows = own_rows(cells_of("all"), records)
    assert [(row["method"], row["ours_mean"], row["seeds"], row["epochs"]) for row in rows] == [
        ("ConCont (mine, method.threshold=0.7)", 60, [1, 2], 60),
        ("ConCont (mine, method.threshold=0.8)", 95, [1], 90),
    ]


def test_what_is_the_papers_or_in_no_column_has_no_row_of_its_own(made_up):
    holdout = own("mine", data="cifar10")
    holdout["settings"]["data"]["holdout"] = 0.1
    records = [
        made_up(WHOLE, recipe="mine"),  # a published row, whatever it is called
        holdout | {"evaluated_on": "holdout"},
        own("mine", share=(0.15, 0.5)),
        own("mine", data="digits"),
        own("cifar10"),  # the data's own recipe with one value changed
        own("cifar10+two-branch", method={"branches": "two"}),
        own("mine") | {"accuracy_last": None},
        own("mine") | {"seed": 7},
    ]
    records[0]["settings"]["recipe"] = "mine"
    assert own_rows(cells_of("all"), records) == []
    assert own_rows(cells_of("table2"), [own("mine")]) == own_rows(PARTS, [own("mine")]) == []
    assert compare(cells_of("all"), [own("mine")]) == compare(cells_of("all"), [])


def test_the_projects_own_records_fill_the_cells_that_they_always_filled():
    """As they did before sweeps were parted from the paper: filled_cells.json was written then."""
    ledger = read(Path(__file__).parents[2] / "benchmarks" / "results" / "ledger.json")
    names = ("table", "data", "labeled", "q", "method", "ours_mean", "seeds", "epochs")
    rows = [row for row in compare(cells_of("all"), ledger) if row["ours_mean"] is not None]
    expected = json.loads((Path(__file__).parent / "filled_cells.json").read_text())
    assert (len(ledger), len(expected)) == (127, 62)  # the others: hold-outs, the strong recipes
    assert [[row[name] for name in names] for row in rows] == expected
    rows = own_rows(cells_of("all"), ledger)
    found = Counter((row["method"], row["recipe"]) for row in rows)
    assert found == {
        ("ConCont (strong)", "cifar10-strong"): 8,
        ("ConCont (strong)", "svhn-strong"): 5,
    }
