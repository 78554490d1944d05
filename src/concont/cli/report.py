"""`concont report`."""

from pathlib import Path
from typing import Annotated

import typer

from concont.cli.app import Device, app
from concont.cli.run_data import DataNow, ImagesNow, OwnNetwork, make_network
from concont.errors import count, printable
from concont.runs.output import refuse_output

SUFFIXES = (".html", ".htm")


@app.command()
def report(
    runs: Annotated[list[Path], typer.Argument(help="Folders of runs; several are compared.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The HTML file to write.")] = Path(
        "report.html"
    ),
    overwrite: Annotated[bool, typer.Option(help="Replace a file that is there.")] = False,
    review: Annotated[
        int, typer.Option(min=0, help="How many images to show for review, of each run.")
    ] = 200,
    data: DataNow = None,
    images: ImagesNow = None,
    model: OwnNetwork = None,
    device: Annotated[Device, typer.Option(help="The GPU where there is one.")] = Device.AUTO,
) -> None:
    """Write a page to look at: what came of a run, its doubtful images, several runs compared."""
    from concont.report.record import read_runs

    records = read_runs(runs)  # what can be refused, before what is slow
    refuse_output(out, overwrite, inputs=[data], suffixes=SUFFIXES)
    from concont.report.finished import make_page
    from concont.report.page import render
    from concont.runs.folder import write_whole

    network = None if model is None else make_network(model)
    page = make_page(records, review, device, data, images, network)
    text = render(page)
    write_whole(out, lambda path: _write(path, text))
    for run in page.runs:
        for sentence in run.missing:
            typer.echo(f"{run.name}: {sentence}", err=True)
    size = out.stat().st_size / 2**20
    typer.echo(f"{printable(out)}: {count(len(records), 'run')}, {size:.1f} MB")


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", errors="backslashreplace")
