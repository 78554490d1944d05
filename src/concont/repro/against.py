"""Ours beside the paper's, cell by cell."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import mean, stdev
from typing import Any

from concont.repro.paper import Cell
from concont.repro.plan import settings_of
from concont.repro.record import Record, key_of


def compare(cells: Sequence[Cell], records: Iterable[Record]) -> list[dict[str, Any]]:
    """A row a cell; where ours ran at several lengths, the longest.

    A record counts for a cell if its settings are the cell's own, as a hash of all of them says,
    apart from seed and epochs: no run with another setting gets into a table.
    """
    by_recipe: dict[str, list[tuple[str, Record]]] = defaultdict(list)
    for record in records:
        by_recipe[record["recipe"]].append((key_of(record), record))
    return [_row(cell, _runs(cell, by_recipe[cell.recipe])) for cell in cells]


def runs_of(cell: Cell, records: Iterable[Record]) -> dict[int, Record]:
    """By seed, the records that count for a cell."""
    own = [record for record in records if record["recipe"] == cell.recipe]
    return _runs(cell, [(key_of(record), record) for record in own])


def _runs(cell: Cell, candidates: Sequence[tuple[str, Record]]) -> dict[int, Record]:
    by_length: dict[int, dict[int, Record]] = defaultdict(dict)
    for key, record in candidates:
        epochs, seed = record.get("epochs"), record["seed"]
        if record["accuracy_last"] is not None and settings_of(cell, seed, epochs).hash() == key:
            by_length[epochs or 0][seed] = record
    return by_length[max(by_length)] if by_length else {}


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
        "epochs": next((record.get("epochs") for record in chosen.values()), None),
        "recipe": cell.recipe,
    }
