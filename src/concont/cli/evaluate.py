"""`concont evaluate`."""

from pathlib import Path
from typing import Annotated

import typer

from concont.cli.app import app


@app.command()
def evaluate(
    run: Annotated[Path, typer.Argument(help="The folder of a finished run.")],
    data: Annotated[
        str | None, typer.Option(help="Other data to measure on; by default the run's own.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure a finished run on its test images."""
    import json

    from concont.api import load
    from concont.display import percent

    figures = load(run).evaluate(data)
    if as_json:
        typer.echo(json.dumps(figures))
    else:
        typer.echo(
            f"accuracy {percent(figures['accuracy'])} on {figures['n']} {figures['on']} images"
        )
