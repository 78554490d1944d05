"""What a person sees while a run trains: a live bar on a terminal, plain lines elsewhere."""

from collections.abc import Iterator
from typing import Any, Protocol

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

from concont.errors import printable

SHARES = ("confident", "accuracy", "probability_on_sets", "share_in_sets")
LEFT_OUT = (  # of what every line has, which is enough to write to a file
    *("epoch", "step", "seconds", "images_per_s"),
    *("pseudo_accuracy", "pseudo_accuracy_partial", "pseudo_accuracy_unlabeled"),
    *("confident_precision", "accuracy_best", "accuracy_momentum", "accuracy_in_set"),
)


class Point(Protocol):
    """Where a run stands after a step: `training.loop.Progress`."""

    @property
    def step(self) -> int:
        """Steps done."""
        ...

    @property
    def total(self) -> int:
        """Steps of the whole run."""
        ...

    @property
    def epoch(self) -> int:
        """Epochs begun."""
        ...

    @property
    def row(self) -> dict[str, Any] | None:
        """The line of metrics, where the run was evaluated."""
        ...


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


def find_screen(wanted: bool | None = None) -> Console | None:
    """Where progress is shown, standard error; None: not at all.

    wanted: None for where a person watches, on a terminal or in a notebook.
    """
    screen = Console(stderr=True)
    watched = screen.is_terminal or screen.is_jupyter
    return screen if (watched if wanted is None else wanted) else None


def show_progress(
    progress: Iterator[Point], epochs: int | None, title: str, console: Console
) -> None:
    """Draw a run's progress until it ends; epochs: None for a run that has none."""

    def words(point: Point) -> str:
        return title if epochs is None else f"{title}  epoch {point.epoch}/{epochs}"

    if not console.is_terminal:
        for point in progress:
            if point.row is not None:
                line = f"{words(point)}  {describe_row(point.row)}"
                console.print(Text(printable(line)), soft_wrap=True)
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
