"""The tables of what is learned of features, and how fast."""

from statistics import fmean

from tables_common import Rows, percent, record, table


@table
def features() -> Rows:
    found = record("features")["rows"]
    names = list(dict.fromkeys(row["method"] for row in found))
    rows = [["set", *names]]
    for data in dict.fromkeys(row["data"] for row in found):
        own = {row["method"]: row for row in found if row["data"] == data}
        rows.append([data, *(percent(fmean(own[name]["accuracies"]), 1) for name in names)])
    return rows


@table
def features_speed() -> Rows:
    found = record("features-speed")
    held = f"{percent(found['accuracy'])} (a linear model {percent(found['accuracy_linear'])})"
    return [
        ["rows x features", "epochs", "steps", "processor time", "wall time", "load", "accuracy"],
        [
            f"{found['rows']:,} x {found['features']}",
            str(found["epochs"]),
            f"{found['steps']:,}",
            f"{found['processor_seconds']:.0f} s",
            f"{found['wall_seconds']:.0f} s",
            f"{found['load']:.1f}",
            held,
        ],
    ]
