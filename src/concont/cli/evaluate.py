"""`concont evaluate`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from concont.cli.app import Device, app, console


@app.command()
def evaluate(
    run: Annotated[Path, typer.Argument(help="The folder of a finished run.")],
    data: Annotated[
        str | None, typer.Option(help="Other data to measure on; by default the run's own.")
    ] = None,
    device: Annotated[Device, typer.Option(help="The GPU where there is one.")] = Device.AUTO,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure a finished run: accuracy, class by class, confusions, calibration."""
    import json

    from concont.api import load

    figures = load(run, device=device).evaluate(data)
    if as_json:
        typer.echo(json.dumps(figures))
    else:
        _print_figures(figures)


def _print_figures(figures: dict[str, Any]) -> None:
    from rich.table import Table

    from concont.display import percent

    screen = console()
    screen.print(
        f"accuracy {percent(figures['accuracy'])} on {figures['n']} {figures['on']} images, "
        f"calibration error {percent(figures['calibration_error'])}",
        highlight=False,
    )
    names = list(figures["per_class"])
    table = Table(title="True class, its accuracy, and how often it was taken for which")
    table.add_column("class")
    table.add_column("images", justify="right")
    table.add_column("accuracy", justify="right")
    table.add_column("taken for")
    for k, (name, own) in enumerate(figures["per_class"].items()):
        row = figures["confusion"][k]
        wrong = sorted(((n, j) for j, n in enumerate(row) if j != k and n), reverse=True)
        taken = ", ".join(f"{names[j]} {n}" for n, j in wrong[:4])
        table.add_row(name, str(sum(row)), percent(own), taken + (", …" if len(wrong) > 4 else ""))
    screen.print(table)
