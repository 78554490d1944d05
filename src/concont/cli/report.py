"""`concont report`."""

from pathlib import Path
from typing import Annotated

import typer

from concont.cli.app import Device, app
from concont.errors import UsageError, count, printable


@app.command()
def report(
    runs: Annotated[list[Path], typer.Argument(help="Folders of runs; several are compared.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="The HTML file to write.")] = Path(
        "report.html"
    ),
    overwrite: Annotated[bool, typer.Option(help="Write over a file that is there.")] = False,
    review: Annotated[
        int, typer.Option(min=0, help="How many images to show for review, of each run.")
    ] = 200,
    device: Annotated[Device, typer.Option(help="The GPU where there is one.")] = Device.AUTO,
) -> None:
    """Write a page to look at: what came of a run, its doubtful images, several runs compared."""
    _refuse_unless_writable(out, overwrite)
    from concont.report.record import read_runs

    records = read_runs(runs)  # what can be refused, before what is slow
    from concont.report.finished import make_page
    from concont.report.page import render
    from concont.runs.folder import write_whole

    page = make_page(records, review, device)
    text = render(page)
    write_whole(out, lambda path: _write(path, text))
    for run in page.runs:
        for sentence in run.missing:
            typer.echo(f"{run.name}: {sentence}", err=True)
    size = out.stat().st_size / 2**20
    typer.echo(f"{printable(out)}: {count(len(records), 'run')}, {size:.1f} MB")


def _refuse_unless_writable(out: Path, overwrite: bool) -> None:
    if out.exists() and not out.is_file():
        raise UsageError(f"--out {out} is there and is not a file")
    if out.exists() and not overwrite:
        raise UsageError(f"{out} is there already; write over it with --overwrite")
    if not out.parent.is_dir():
        raise UsageError(f"--out {out}: there is no folder {out.parent}")


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", errors="backslashreplace")
