"""`concont evaluate`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from concont.cli.app import Device, app
from concont.cli.run_data import OwnNetwork, open_run
from concont.cli.table import Column, print_line, print_table

WIDEST = 20  # classes whose confusions fit on a screen
NONE = "."  # in place of 0, so that the others stand out


@app.command()
def evaluate(
    run: Annotated[Path, typer.Argument(help="The folder of a finished run.")],
    data: Annotated[
        str | None, typer.Option(help="Other data to measure on; by default the run's own.")
    ] = None,
    images: Annotated[
        Path | None, typer.Option(help="The folder of a table's images; else the table's own.")
    ] = None,
    model: OwnNetwork = None,
    device: Annotated[Device, typer.Option(help="The GPU where there is one.")] = Device.AUTO,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure a finished run: accuracy, class by class, confusions, calibration."""
    import json

    figures = open_run(run, device, model).evaluate(data, folder=images)
    if as_json:
        typer.echo(json.dumps(figures))
    else:
        _print_figures(figures)


def _print_figures(figures: dict[str, Any]) -> None:
    from concont.display import percent

    if figures["on"] == "sets":
        print_line(
            f"{percent(figures['share_in_sets'])} of the labels of {figures['n']} held-out images "
            f"lie in their sets, {percent(figures['probability_on_sets'])} of the probability"
        )
        return
    print_line(
        f"accuracy {percent(figures['accuracy'])} on {figures['n']} {figures['on']} images, "
        f"calibration error {percent(figures['calibration_error'])}"
    )
    _print_classes(figures)
    if len(figures["confusion"]) <= WIDEST:
        _print_confusion(figures)
    else:
        print_line(f"{len(figures['confusion'])} classes: see --json for who is taken for whom")


def _print_classes(figures: dict[str, Any]) -> None:
    from concont.display import percent

    columns = [Column("class", is_text=True), Column("images"), Column("accuracy")]
    found = zip(figures["per_class"].items(), figures["confusion"], strict=True)
    rows = [(name, sum(counts), percent(own)) for (name, own), counts in found]
    print_table("Accuracy of each class", columns, rows)


def _print_confusion(figures: dict[str, Any]) -> None:
    names = list(figures["per_class"])
    columns = [Column("true", is_text=True), *map(Column, names)]
    found = zip(names, figures["confusion"], strict=True)
    rows = [(name, *(n or NONE for n in counts)) for name, counts in found]
    title = "Confusion: a row a true class, a column a predicted one"
    print_table(title, columns, rows, blank=NONE)
