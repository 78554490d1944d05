"""Finished runs grouped by some of their settings: mean, spread and number of each group."""

import difflib
import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import mean, stdev
from typing import Any

from concont.config.flat_settings import flatten_settings
from concont.config.registry import registered_names
from concont.config.resolve import check
from concont.errors import UsageError
from concont.runs.settings import NO_EFFECT_ON_RESULT, Settings
from concont.sweep.record import Record, settings_in

Flat = dict[str, Any]  # values by setting: `method.threshold`
# What says which run it is, and what cannot change its result.
NOT_COMPARED = {
    *("recipe", "data.root", "data.seed", "train.seed"),
    *(f"train.{name}" for name in NO_EFFECT_ON_RESULT),
}


@dataclass(frozen=True)
class Groups:
    """Rows to show, and what a reader must know of them."""

    rows: list[dict[str, Any]]  # the settings' values, accuracy_mean, accuracy_std, n
    differing: list[str]  # settings that differ inside a group, though not grouped by
    left_out: int  # runs without an accuracy, or with settings that cannot be read any more
    evaluated_on: list[str]  # `test`, `holdout`; where both are, a row says which


def group_records(records: Iterable[Record], names: Sequence[str]) -> Groups:
    """A row for each combination of these settings' values.

    Accuracies are shares, of the last epoch. Runs that were evaluated on a hold-out and those that
    were evaluated on the test set are kept apart.
    """
    members: dict[str, list[tuple[Flat, Record]]] = defaultdict(list)
    kinds, left_out, known = set[str](), 0, set[str]()
    for record in records:
        settings = settings_in(record)
        if settings is None or record["accuracy_last"] is None:
            left_out += 1
            continue
        values, kind = flatten_settings(settings), evaluated_on(record, settings)
        known.update(values)
        kinds.add(kind)
        members[json.dumps([kind, *(values.get(name) for name in names)])].append((values, record))
    _refuse_unknown(names, known | set(_every_setting()))
    rows, differing = [], set[str]()
    for key, group in members.items():
        kind, *chosen = json.loads(key)
        row = dict(zip(names, chosen, strict=True))
        on = {"evaluated_on": kind} if len(kinds) > 1 else {}
        rows.append({**row, **on, **_summarize([record["accuracy_last"] for _, record in group])})
        differing |= find_differing([values for values, _ in group])
    rows.sort(key=lambda row: [_rank(row[name]) for name in names])
    return Groups(rows, sorted(differing - set(names)), left_out, sorted(kinds))


def evaluated_on(record: Record, settings: Settings) -> str:
    """`test` or `holdout`; early records do not say it in a word of their own."""
    return str(record.get("evaluated_on") or ("holdout" if settings.data.holdout else "test"))


def find_differing(flats: Sequence[Flat]) -> set[str]:
    """The settings that all of these have, with different values; seeds do not count."""
    shared = set.intersection(*(set(flat) for flat in flats)) - NOT_COMPARED
    return {name for name in shared if any(flat[name] != flats[0][name] for flat in flats)}


def _summarize(accuracies: Sequence[float]) -> dict[str, Any]:
    return {
        "accuracy_mean": round(mean(accuracies), 6),
        "accuracy_std": round(stdev(accuracies), 6) if len(accuracies) > 1 else None,
        "n": len(accuracies),
    }


def _every_setting() -> set[str]:
    """The names of all settings of all methods."""
    methods = [check({"method": {"name": name}}) for name in registered_names()]
    return {name for settings in methods for name in flatten_settings(settings)}


def _refuse_unknown(names: Sequence[str], known: set[str]) -> None:
    for name in names:
        if name not in known:
            close = difflib.get_close_matches(name, sorted(known), n=1)
            hint = f"did you mean {close[0]}?" if close else "write it as section.key"
            raise UsageError(f"--by: no setting {name}; {hint}")


def _rank(value: Any) -> tuple[int, Any]:
    """Nothing before numbers before text, since they cannot be compared."""
    if value is None:
        return 0, 0
    return (1, value) if isinstance(value, int | float) else (2, json.dumps(value))
