"""Tables of what is made of a finished run: labels to look at."""

from tables_common import DATA, Rows, percent, record, table

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


@table
def votes() -> Rows:
    """Whose labels of the voted images are right how often, and what the network learned."""
    names = ["majority", "Dawid and Skene", "`resolve`", "held out", "without weights"]
    rows = [["data", "seed", "voted images", *names]]
    runs = record("votes")["runs"]
    plain = {(r["data"], r["seed"]): r for r in runs if r["vote_strength"] == 0}
    for run in runs:
        if run["vote_strength"] == 0:
            continue
        labels = [percent(run[key]) for key in ("majority", "dawid_skene")]
        learned = [run["held_out"], plain[run["data"], run["seed"]]["held_out"]]
        found = [*labels, f"**{percent(run['resolved'])}**", *map(percent, learned)]
        rows.append(
            [DATA.get(run["data"], run["data"]), str(run["seed"]), f"{run['voted']:,}", *found]
        )
    return rows
