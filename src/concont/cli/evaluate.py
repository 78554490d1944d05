"""`concont evaluate`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from concont.cli.app import Device, app, console

if TYPE_CHECKING:
    from rich.table import Table

WIDEST = 20  # classes whose confusions fit on a screen


@app.command()
def evaluate(
    run: Annotated[Path, typer.Argument(help="The folder of a finished run.")],
    data: Annotated[
        str | None, typer.Option(help="Other data to measure on; by default the run's own.")
    ] = None,
    images: Annotated[
        Path | None, typer.Option(help="The folder of a table's images; else the table's own.")
    ] = None,
    device: Annotated[Device, typer.Option(help="The GPU where there is one.")] = Device.AUTO,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure a finished run: accuracy, class by class, confusions, calibration."""
    import json

    from concont.api import load

    figures = load(run, device=device).evaluate(data, folder=images)
    if as_json:
        typer.echo(json.dumps(figures))
    else:
        _print_figures(figures)


def _print_figures(figures: dict[str, Any]) -> None:
    from concont.cli.display import percent

    screen = console()
    screen.print(
        f"accuracy {percent(figures['accuracy'])} on {figures['n']} {figures['on']} images, "
        f"calibration error {percent(figures['calibration_error'])}",
        highlight=False,
    )
    screen.print(_make_class_table(figures))
    if len(figures["confusion"]) <= WIDEST:
        screen.print(_make_confusion_table(figures))
    else:
        screen.print(f"{len(figures['confusion'])} classes: see --json for who is taken for whom")


def _make_class_table(figures: dict[str, Any]) -> "Table":
    from rich.table import Table

    from concont.cli.display import percent

    table = Table(title="Accuracy of each class")
    table.add_column("class")
    table.add_column("images", justify="right")
    table.add_column("accuracy", justify="right")
    rows = zip(figures["per_class"].items(), figures["confusion"], strict=True)
    for (name, own), counts in rows:
        table.add_row(name, str(sum(counts)), percent(own))
    return table


def _make_confusion_table(figures: dict[str, Any]) -> "Table":
    from rich.table import Table

    table = Table(title="Confusion: a row a true class, a column a predicted one")
    table.add_column("")
    names = list(figures["per_class"])
    for name in names:
        table.add_column(name, justify="right")
    for name, counts in zip(names, figures["confusion"], strict=True):
        table.add_row(name, *(str(n) if n else "." for n in counts))
    return table
