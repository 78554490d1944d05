"""Tables of what is made of a finished run: labels to look at."""

from tables_common import Rows, percent, record, table

PARTS = ("review list", "p-score", "probability inside the set", "neighbours")


@table
def review_list() -> Rows:
    """Wrong labels in all and among the first tenth, by the list and by each of its parts alone."""
    names = ["in the first tenth of the list", *(f"by the {part} alone" for part in PARTS[1:])]
    rows = [["data", "images", "wrong labels, %", *names, "times as many as in all"]]
    for run in record("review-list")["runs"]:
        head = [run["wrong_at_the_head"][part] for part in PARTS]
        found = [f"**{percent(head[0], 1)}**", *(percent(share, 1) for share in head[1:])]
        lift = f"{head[0] / run['wrong']:.1f}"
        rows.append([run["data"], f"{run['images']:,}", percent(run["wrong"], 1), *found, lift])
    return rows
