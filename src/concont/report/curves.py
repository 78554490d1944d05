"""Charts of what happened while runs trained: of one run, or of several laid over each other."""

from collections.abc import Callable, Mapping, Sequence
from statistics import mean, quantiles

from concont.errors import printable
from concont.report.charts import Chart, Points, make_layout, make_line, shorten_name, thin
from concont.report.record import RunRecord, is_number
from concont.report.wording import show_number, show_share
from concont.types import Plain

EPOCH = "epoch"
PERCENT = {"ticksuffix": " %"}
LINES = 12  # classes with a line each; of more, the spread is drawn
TERMS = {
    "loss": "total",
    "loss_part": "candidate labels",
    "loss_reg": "consistency of labels",
    "loss_contrast": "contrast of features",
}
WIDE = 20  # how much larger the largest loss is from which on tenfold steps are as wide as others
SPREAD = ("lowest", "lower quarter", "middle", "upper quarter", "highest")
Lines = Mapping[str, Points]  # by what each is called


def draw_accuracy(records: Sequence[RunRecord]) -> Chart | None:
    """Of images that were not learned from, over time."""
    lines = {record.name: record.read_series("accuracy") for record in records}
    if len(records) == 1:
        lines = {"network": lines[records[0].name]}
        lines["its running average"] = records[0].read_series("accuracy_momentum")
    found = _drop_empty(lines)
    if not found:
        return None
    said = [f"{name} {_at_end(points, show_share)}" for name, points in found.items()]
    return _draw_shares("Accuracy", "accuracy", found, f"At the end: {'; '.join(said)}.")


def draw_losses(records: Sequence[RunRecord]) -> Chart | None:
    """The loss and its terms of one run; of several, the loss alone."""
    if len(records) == 1:
        names = {name for row in records[0].rows for name in row if name.startswith("loss")}
        known = [*TERMS, *sorted(names - set(TERMS))]
        lines = {TERMS.get(name, printable(name)): records[0].read_series(name) for name in known}
    else:
        lines = {record.name: record.read_series("loss") for record in records}
    found = _drop_empty(lines)
    if not found:
        return None
    said = [f"{name} {_from_to(points, show_number)}" for name, points in found.items()]
    layout = make_layout(EPOCH, "loss", yaxis=_scale([y for own in found.values() for _, y in own]))
    return Chart(
        "Losses",
        f"From the first evaluation to the last: {'; '.join(said)}.",
        [make_line(name, points, k) for k, (name, points) in enumerate(found.items())],
        layout,
        *_tabulate(found, show_number),
    )


def draw_confident(records: Sequence[RunRecord]) -> Chart | None:
    """The share of confident pseudo-labels; of one run also how many of them are right."""
    lines = {record.name: record.read_series("confident") for record in records}
    if len(records) == 1:
        lines = {"confident": lines[records[0].name]}
        lines["right, of the confident"] = records[0].read_series("confident_precision")
        lines["right, of all"] = records[0].read_series("pseudo_accuracy")
    found = _drop_empty(lines)
    if not found:
        return None
    said = [f"{name} {_at_end(points, show_share)}" for name, points in found.items()]
    sentence = f"Pseudo-labels of the images in each step. At the end: {'; '.join(said)}."
    return _draw_shares("Confident pseudo-labels", "share", found, sentence)


def draw_thresholds(record: RunRecord) -> Chart | None:
    """The score that a pseudo-label of each class needs; of many classes, how these spread."""
    rows = [row for row in record.rows if row.get("thresholds") and is_number(row.get("epoch"))]
    if not rows:
        return None
    names = record.classes or tuple(map(str, range(len(rows[-1]["thresholds"]))))
    if any(len(row["thresholds"]) != len(names) for row in rows):  # they are another run's
        return None
    epochs, last = [float(row["epoch"]) for row in rows], rows[-1]["thresholds"]
    few = len(last) <= LINES
    values = [row["thresholds"] if few else _spread(row["thresholds"]) for row in rows]
    columns = zip(names if few else SPREAD, zip(*values, strict=True), strict=True)
    lines = {name: list(zip(epochs, own, strict=True)) for name, own in columns}
    traces = [make_line(name, points, k) for k, (name, points) in enumerate(lines.items())]
    low, high = (pick(range(len(last)), key=last.__getitem__) for pick in (min, max))
    return Chart(
        "Thresholds by class",
        f"A pseudo-label is confident from this score on. At the end the lowest is "
        f"{last[low]:.3f} ({names[low]}) and the highest {last[high]:.3f} ({names[high]}).",
        [shorten_name(line, name) for line, name in zip(traces, lines, strict=True)],
        make_layout(EPOCH, "score"),
        *_tabulate(lines, lambda value: f"{value:.3f}"),
    )


def draw_precision(records: Sequence[RunRecord]) -> Chart | None:
    """How well p-score and highest probability tell right pseudo-labels from wrong ones."""
    kinds = {"p_score": "p-score", "max_probability": "highest probability"}
    lines, traces = dict[str, Points](), list[Plain]()
    for number, record in enumerate(records):
        for place, (kind, words) in enumerate(kinds.items()):
            values = _read_precision(record, kind)
            if not values:
                continue
            name = words if len(records) == 1 else f"{record.name}, {words}"
            steps = len(values)
            lines[name] = [(100 * (k + 1) / steps, value) for k, value in enumerate(values)]
            colour = place if len(records) == 1 else number
            shown = _to_percent(lines[name])
            traces.append(make_line(name, shown, colour, mode="lines"))
            if place:
                traces[-1]["line"]["dash"] = "dash"
    if not lines:
        return None
    said = [f"{name} {show_share(mean(y for _, y in own))}" for name, own in lines.items()]
    return Chart(
        "Telling right pseudo-labels from wrong ones",
        "Of the highest scores, the share that is right, against the share of all right ones that "
        f"is among them. Mean precision: {'; '.join(said)}.",
        traces,
        make_layout("recall", "precision", xaxis=PERCENT, yaxis=PERCENT),
        *_tabulate(lines, show_share, "recall, %", every=10),
    )


def _draw_shares(title: str, axis: str, lines: Lines, sentence: str) -> Chart:
    """Lines of shares, shown in percent."""
    traces = [make_line(name, _to_percent(own), k) for k, (name, own) in enumerate(lines.items())]
    layout = make_layout(EPOCH, axis, yaxis=PERCENT)
    return Chart(title, sentence, traces, layout, *_tabulate(lines, show_share))


def _tabulate(
    lines: Lines, show: Callable[[float], str], first: str = EPOCH, every: int = 1
) -> tuple[list[str], list[list[str]]]:
    """Head and rows: a column a line, a row an x that any of them has, or each so-manyth x."""
    columns = [dict(thin(points)) for points in lines.values()]
    places = sorted({x for column in columns for x in column})[every - 1 :: every]
    rows = [
        [f"{x:g}", *(show(column[x]) if x in column else "" for column in columns)] for x in places
    ]
    return [first, *lines], rows


def _scale(values: Sequence[float]) -> Plain:
    """An axis on which terms of very different size can be seen together."""
    low, high = min(values), max(values)
    if low <= 0 or high / low < WIDE:
        return {"type": "linear"}
    return {"type": "log", "dtick": 1}


def _drop_empty(lines: Lines) -> Lines:
    return {name: points for name, points in lines.items() if points}


def _to_percent(points: Points) -> list[tuple[float, float]]:
    return [(x, round(100 * y, 4)) for x, y in points]


def _at_end(points: Points, show: Callable[[float], str]) -> str:
    return show(points[-1][1])


def _from_to(points: Points, show: Callable[[float], str]) -> str:
    return f"{show(points[0][1])} to {show(points[-1][1])}"


def _spread(values: Sequence[float]) -> list[float]:
    """Lowest, quartiles, highest."""
    return [min(values), *quantiles(values, n=4), max(values)]


def _read_precision(record: RunRecord, kind: str) -> list[float] | None:
    """Precision at evenly spaced recalls, of a run whose true labels were known."""
    found = (record.verdict or {}).get("precision")
    return found.get(kind) if isinstance(found, dict) else None
