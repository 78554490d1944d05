"""Ours beside the paper's, cell by cell; and rows of our own in the columns of its tables."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from statistics import mean, stdev
from typing import Any

from concont.config.flat_settings import flatten_settings
from concont.paper.plan import cells_of, settings_of
from concont.paper.tables import DATA, Cell
from concont.runs.settings import Settings
from concont.sweep.groups import evaluated_on, find_differing
from concont.sweep.record import Record, settings_in

Runs = dict[int, dict[int, Record]]  # by epochs, 0 where there are none, then by seed
COLUMNS_OF = ("table1", "table2", "table3")  # the tables that rows of our own may stand in
# How the paper writes methods; others are called as `--method` calls them.
WRITTEN = {"concont": "ConCont", "dpll": "DPLL", "pico": "PiCO", "sspl": "SSPL", "parm": "PARM"}


def compare(cells: Sequence[Cell], records: Iterable[Record]) -> list[dict[str, Any]]:
    """A row a cell; where ours ran at several lengths, the longest."""
    found = runs_of(cells, records)
    return [_make_row(cell, cell.recipe, _longest(found[cell])) for cell in cells]


def runs_of(cells: Sequence[Cell], records: Iterable[Record]) -> dict[Cell, Runs]:
    """The records that count for each cell.

    A record does if all of its settings are the cell's own, but for seed and epochs, whatever its
    recipe is called: no run with another setting gets into a table. Of two the first counts.
    """
    found: dict[str, Runs] = defaultdict(lambda: defaultdict(dict))
    for settings, record in _read_settings(records):
        _add_run(found[_hash_without_seed_and_length(settings)], record)
    return {cell: found.get(_hash_of_cell(cell), {}) for cell in cells}


def own_rows(cells: Sequence[Cell], records: Iterable[Record]) -> list[dict[str, Any]]:
    """Rows of recipes that are not the paper's, in the columns of Tables 1 to 3 among these cells.

    A run counts if it was evaluated on the test set and its settings are no published row's. Runs
    of one recipe with different settings, but for seed and epochs, are never averaged: each kind
    has a row, named by what it differs in.
    """
    published = {_hash_of_cell(cell) for cell in cells_of("all")}
    tables = {(c.data, c.labeled, c.q): c.table for c in cells if c.table in COLUMNS_OF}
    found: dict[tuple[Any, ...], dict[str, Runs]] = defaultdict(dict)
    settings_by_hash: dict[str, Settings] = {}
    for settings, record in _read_settings(records):
        column = (settings.data.source, settings.data.labeled, settings.data.ambiguity)
        kind = _hash_without_seed_and_length(settings)
        if column not in tables or kind in published or not is_own_recipe(settings.recipe):
            continue
        if evaluated_on(record, settings) == "test":
            row = (*column, settings.method.name, settings.recipe)
            _add_run(found[row].setdefault(kind, defaultdict(dict)), record)
            settings_by_hash[kind] = settings
    rows = []
    for (data, labeled, q, method, recipe), kinds in found.items():
        labels = label_settings([settings_by_hash[kind] for kind in kinds])
        for runs, label in zip(kinds.values(), labels, strict=True):
            name = f"{WRITTEN.get(method, method)} ({short_name(recipe, data)}{label})"
            cell = Cell(tables[data, labeled, q], data, labeled, q, name, None, None)
            rows.append(_make_row(cell, recipe, _longest(runs)))
    return sorted(rows, key=lambda row: (row["table"], row["method"]))


def is_own_recipe(recipe: str) -> bool:
    """Whether a recipe is not a data set's own, with or without a row of the tables laid on it.

    A run of such a recipe with another value here and there is no recipe of its own.
    """
    return recipe.partition("+")[0] not in (*DATA, "default")


def short_name(recipe: str, data: str) -> str:
    """The recipe's name without its data set's: `cifar10-strong` is `strong`."""
    return recipe.removeprefix(f"{data}-")


def label_settings(several: Sequence[Settings]) -> list[str]:
    """For each, what tells it apart from the others: `, method.threshold=0.7`."""
    flats = [flatten_settings(settings) for settings in several]
    names = sorted(find_differing(flats) - {"train.epochs"})
    return ["".join(f", {name}={flat[name]}" for name in names) for flat in flats]


def _read_settings(records: Iterable[Record]) -> Iterable[tuple[Settings, Record]]:
    """Those with an accuracy whose settings can be read, with one seed for all."""
    for record in records:
        settings = settings_in(record)
        if settings is None or record["accuracy_last"] is None:
            continue
        if settings.data.seed == settings.train.seed == record["seed"]:
            yield settings, record


def _add_run(runs: Runs, record: Record) -> None:
    runs[record["epochs"] or 0].setdefault(record["seed"], record)


def _longest(runs: Runs) -> dict[int, Record]:
    return runs[max(runs)] if runs else {}


def _hash_of_cell(cell: Cell) -> str:
    return _hash_without_seed_and_length(settings_of(cell, 1, None))


def _hash_without_seed_and_length(settings: Settings) -> str:
    data, train = replace(settings.data, seed=1), replace(settings.train, seed=1, epochs=1)
    return replace(settings, data=data, train=train).hash()


def _make_row(cell: Cell, recipe: str, runs: dict[int, Record]) -> dict[str, Any]:
    found = [100 * record["accuracy_last"] for record in runs.values()]
    return {
        "table": cell.table,
        "data": cell.data,
        "labeled": cell.labeled,
        "q": cell.q,
        "method": cell.method,
        "paper_mean": cell.mean,
        "paper_std": cell.std,
        "ours_mean": round(mean(found), 4) if found else None,
        "ours_std": round(stdev(found), 4) if len(found) > 1 else None,
        "seeds": sorted(runs) or None,
        "epochs": next((record["epochs"] for record in runs.values()), None),
        "recipe": recipe,
    }
