"""Runs that train, in the terminal: a table that updates itself, or plain lines elsewhere."""

import time
from collections.abc import Sequence

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from concont.cli.table import print_line
from concont.display import describe_row
from concont.report.answer import describe_progress
from concont.report.record import RunRecord, is_number
from concont.report.watched import Watch
from concont.report.wording import show_duration, show_number, show_share

EVERY = 1.0  # seconds
BLOCKS = "▁▂▃▄▅▆▇█"
WIDTH = 16  # letters of a sparkline


def show_runs(watch: Watch, screen: Console) -> None:
    """Until the user ends it; of a single run, until the run has ended."""
    if not screen.is_terminal:
        _print_lines(watch, screen)
        return
    with Live(console=screen, auto_refresh=False) as live:
        while True:
            records = watch.read()
            live.update(make_table(records), refresh=True)
            if _is_over(watch, records):
                return
            time.sleep(EVERY)


def make_table(records: Sequence[RunRecord]) -> Table:
    """A row a run: how far it is, what it says last, and how that came about."""
    table = Table(expand=False)
    for name in ("run", "state", "", "accuracy", "", "loss", "confident", "images/s", "time"):
        right = name in ("accuracy", "loss", "confident", "images/s", "time")
        table.add_column(name, justify="right" if right else "left", no_wrap=bool(name))
    for record in records:
        table.add_row(
            Text(record.name),
            Text(describe_progress(record)),
            _make_bar(record),
            _show_share(record, "accuracy"),
            draw_sparkline([value for _, value in record.read_series("accuracy")]),
            _show_number(record, "loss"),
            _show_share(record, "confident"),
            _show_number(record, "images_per_s"),
            "-" if record.seconds is None else show_duration(record.seconds),
        )
    return table


def draw_sparkline(values: Sequence[float]) -> str:
    """The last values as bars of letters, the lowest and the highest as far apart as can be."""
    kept = values[-WIDTH:]
    if not kept:
        return ""
    low, high = min(kept), max(kept)
    step = (high - low) / (len(BLOCKS) - 1)
    return "".join(BLOCKS[round((value - low) / step)] if step else BLOCKS[0] for value in kept)


def _print_lines(watch: Watch, screen: Console) -> None:
    """A line for each new line of metrics."""
    seen: dict[str, int] = {}
    while True:
        records = watch.read()
        for record in reversed(records):  # the oldest first
            for row in record.rows[seen.get(record.name, 0) :]:
                words = f"{record.name}  epoch {row.get('epoch')}  {describe_row(row)}"
                print_line(words, screen)
            seen[record.name] = len(record.rows)
        if _is_over(watch, records):
            return
        time.sleep(EVERY)


def _is_over(watch: Watch, records: Sequence[RunRecord]) -> bool:
    """Whether it was one run that is watched, and that has ended."""
    return [record.path for record in records] == [watch.path] and records[0].state == "finished"


def _make_bar(record: RunRecord) -> ProgressBar:
    done = 1 if record.state == "finished" else record.last.get("epoch")
    total = 1 if record.state == "finished" else record.epochs
    return ProgressBar(total=total or 1, completed=done if is_number(done) else 0, width=16)


def _show_share(record: RunRecord, name: str) -> str:
    value = record.last.get(name)
    return show_share(value) if is_number(value) else "-"


def _show_number(record: RunRecord, name: str) -> str:
    value = record.last.get(name)
    return show_number(value) if is_number(value) else "-"
