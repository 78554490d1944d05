"""What a person sees while a run trains: a live bar on a terminal, plain lines elsewhere."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress import (
    BarColumn,
    SpinnerColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.progress import (
    Progress as Bars,
)
from rich.text import Text

from concont.cli.table import print_line
from concont.errors import printable

if TYPE_CHECKING:
    from concont.training.loop import Progress


SHARES = ("confident", "accuracy", "probability_on_sets", "share_in_sets")
LEFT_OUT = (  # of what every line has, which is enough to write to a file
    *("epoch", "step", "seconds", "images_per_s"),
    *("pseudo_accuracy", "pseudo_accuracy_partial", "pseudo_accuracy_unlabeled"),
    *("confident_precision", "accuracy_best", "accuracy_momentum", "accuracy_in_set"),
)


def percent(value: float | None) -> str:
    """A share as text; a dash where there is none."""
    return "-" if value is None else f"{100 * value:.2f} %"


def describe_row(row: dict[str, Any]) -> str:
    """A line of metrics in words, with what a method reports under a name of its own."""
    parts = [f"{row['images_per_s']:,.0f} images/s"]
    for name, value in row.items():  # also what a method of the user's own reports
        if not isinstance(value, float) or name in LEFT_OUT:
            continue
        shown = percent(value) if name in SHARES else f"{value:.3f}"
        parts.append(f"{name.removeprefix('loss_')} {shown}")
    return "  ".join(parts)


def show_progress(
    progress: "Iterator[Progress]", epochs: int | None, title: str, console: Console
) -> None:
    """Draw a run's progress until it ends; epochs: None for a run that has none."""

    def words(point: "Progress") -> str:
        return title if epochs is None else f"{title}  epoch {point.epoch}/{epochs}"

    if not console.is_terminal:
        for point in progress:
            if point.row is not None:
                line = f"{words(point)}  {describe_row(point.row)}"
                print_line(line, console)
        return
    bars = Bars(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=30),
        TextColumn("{task.percentage:3.0f} %"),
        TimeRemainingColumn(compact=True),
        console=console,
    )
    figures = Text("")  # the last evaluation, on a line of its own
    task = bars.add_task(title, total=None)
    with Live(Group(bars, figures), console=console, refresh_per_second=10):
        for point in progress:
            bars.update(task, total=point.total, completed=point.step, description=words(point))
            if point.row is not None:
                figures.plain = printable(f"  {describe_row(point.row)}")
