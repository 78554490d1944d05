"""Ours beside the paper's, cell by cell."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from statistics import mean, stdev
from typing import Any

from concont.paper.plan import settings_of
from concont.paper.tables import Cell
from concont.runs.settings import Settings
from concont.sweep.record import Record, settings_in

Runs = dict[int, dict[int, Record]]  # by epochs, 0 where there are none, then by seed


def compare(cells: Sequence[Cell], records: Iterable[Record]) -> list[dict[str, Any]]:
    """A row a cell; where ours ran at several lengths, the longest."""
    found = runs_of(cells, records)
    return [_row(cell, found[cell][max(found[cell])] if found[cell] else {}) for cell in cells]


def runs_of(cells: Sequence[Cell], records: Iterable[Record]) -> dict[Cell, Runs]:
    """The records that count for each cell.

    A record does if all of its settings are the cell's own, seed and epochs apart, whatever its
    recipe is called: no run with another setting gets into a table. Of two the first counts.
    """
    found: dict[str, Runs] = defaultdict(lambda: defaultdict(dict))
    for record in records:
        settings = settings_in(record)
        if settings is None or record["accuracy_last"] is None:
            continue
        if settings.data.seed == settings.train.seed == record["seed"]:
            runs = found[_apart_from_seed_and_length(settings)]
            runs[record["epochs"] or 0].setdefault(record["seed"], record)
    return {c: found.get(_apart_from_seed_and_length(settings_of(c, 1, None)), {}) for c in cells}


def _apart_from_seed_and_length(settings: Settings) -> str:
    data, train = replace(settings.data, seed=1), replace(settings.train, seed=1, epochs=1)
    return replace(settings, data=data, train=train).hash()


def _row(cell: Cell, chosen: dict[int, Record]) -> dict[str, Any]:
    found = [100 * record["accuracy_last"] for record in chosen.values()]
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
        "seeds": sorted(chosen) or None,
        "epochs": next((record["epochs"] for record in chosen.values()), None),
        "recipe": cell.recipe,
    }
