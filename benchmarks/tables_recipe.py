"""The tables of runs towards a strong recipe."""

from typing import Any

from tables_common import Rows, percent, record, table


def arms() -> dict[str, Any]:
    """The runs towards a strong recipe, by what was changed."""
    return {arm["arm"]: arm for arm in record("cifar10-strong-search")["arms"]}


@table
def strong_search() -> Rows:
    columns = {
        "accuracy, %": "accuracy",
        "momentum network, %": "accuracy_momentum",
        "picked, %": "accuracy_in_set",
        "partial, %": "pseudo_accuracy_partial",
        "unlabelled, %": "pseudo_accuracy_unlabeled",
    }
    rows = [["changed", *columns]]
    for name, arm in arms().items():
        last = arm["lines"][-1]
        words = "nothing: the start" if name == "start" else name
        rows.append([words, *(percent(last[key]) for key in columns.values())])
    return rows
