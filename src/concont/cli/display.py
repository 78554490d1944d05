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

if TYPE_CHECKING:
    from concont.training.loop import Progress


IN_THE_FILE = {  # alone: metrics.jsonl holds them, the screen has no room
    *("seconds", "images_per_s", "pseudo_accuracy", "confident_precision"),
    *("pseudo_accuracy_partial", "pseudo_accuracy_unlabeled"),
    *("accuracy_best", "accuracy_momentum", "accuracy_in_set"),
}


def percent(value: float | None) -> str:
    """A share as text; a dash where there is none."""
    return "-" if value is None else f"{100 * value:.2f} %"


def describe_row(row: dict[str, Any]) -> str:
    """A line of metrics in words, with what a method reports under a name of its own."""
    parts = [f"{row['images_per_s']:,.0f} images/s"]
    figures = {name: value for name, value in row.items() if isinstance(value, float)}
    for name in [name for name in figures if name.startswith("loss")]:
        parts.append(f"{name.removeprefix('loss_')} {figures.pop(name):.3f}")
    shares = {name: figures.pop(name, None) for name in ("confident", "accuracy")}
    own = [f"{name} {value:.3f}" for name, value in figures.items() if name not in IN_THE_FILE]
    told = [f"{name} {percent(value)}" for name, value in shares.items() if value is not None]
    return "  ".join([*parts, *own, *told])


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
                console.print(line, soft_wrap=True, highlight=False)
        return
    bars = Bars(
        SpinnerColumn(),
        TextColumn("{task.description}"),
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
                figures.plain = f"  {describe_row(point.row)}"
