"""What a person sees while a run trains: a live bar on a terminal, plain lines elsewhere."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    SpinnerColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.progress import (
    Progress as Bars,
)

if TYPE_CHECKING:
    from concont.engine.loop import Progress


def percent(value: float | None) -> str:
    """A share as text; a dash where there is none."""
    return "-" if value is None else f"{100 * value:.2f} %"


def describe(row: dict[str, Any]) -> str:
    """A line of metrics in words."""
    parts = [f"{row['images_per_s']:,.0f} images/s", f"loss {row['loss']:.3f}"]
    for name, word in (("loss_part", "part"), ("loss_reg", "reg"), ("loss_contrast", "contrast")):
        if row[name] is not None:
            parts.append(f"{word} {row[name]:.3f}")
    if row["confident"] is not None:
        parts.append(f"confident {percent(row['confident'])}")
    if row["accuracy"] is not None:
        parts.append(f"accuracy {percent(row['accuracy'])}")
    return "  ".join(parts)


def watch(progress: "Iterator[Progress]", epochs: int, title: str, console: Console) -> None:
    """Draw a run's progress until it ends."""
    if not console.is_terminal:
        for point in progress:
            if point.row is not None:
                console.print(
                    f"{title}  epoch {point.epoch}/{epochs}  {describe(point.row)}",
                    soft_wrap=True,
                    highlight=False,
                )
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TimeRemainingColumn(),
        TextColumn("{task.fields[figures]}"),
    )
    with Bars(*columns, console=console) as bars:
        task = bars.add_task(title, total=None, figures="")
        for point in progress:
            bars.update(
                task,
                total=point.total,
                completed=point.step,
                description=f"{title}  epoch {point.epoch}/{epochs}",
            )
            if point.row is not None:
                bars.update(task, figures=describe(point.row))
