"""`concont resolve`."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from concont.cli.app import Device, app, tell
from concont.cli.run_data import (
    DataNow,
    ImagesNow,
    OwnNetwork,
    list_run_inputs,
    open_run,
    read_problem,
)
from concont.display import percent
from concont.errors import UsageError, count, printable
from concont.runs.output import SUFFIXES, refuse_output

if TYPE_CHECKING:
    from concont.answers.resolution import Resolution

MANY = 10_000  # images that take more than a moment
SHOWN = 5  # of the review list


@app.command()
def resolve(
    run: Annotated[Path, typer.Argument(help="The folder of a finished run.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="The file of labels to write, .csv or .parquet."),
    ] = None,
    budget: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Write only so many images, those to have labelled next, as a sheet to fill in.",
        ),
    ] = None,
    data: DataNow = None,
    images: ImagesNow = None,
    overwrite: Annotated[bool, typer.Option(help="Replace a file that is there.")] = False,
    model: OwnNetwork = None,
    device: Annotated[Device, typer.Option(help="The GPU where there is one.")] = Device.AUTO,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Name the label of every training image, and the images that a person should look at first.

    A label is one of the image's candidates, unless the network is nearly certain of a class that
    is not among them: then the set is overruled. With --budget the file is a sheet: fill in
    `annotator` and `label`, and `concont data add-votes` adds the answers to the table.
    """
    if budget is not None and out is None:
        raise UsageError("--budget writes a sheet to fill in: say where, by --out")
    loaded = open_run(run, device, model)
    if out is not None:
        refuse_output(out, overwrite, list_run_inputs(loaded, data, model), SUFFIXES)
    from concont.answers.resolution import resolve as resolve_run

    problem = read_problem(loaded, data, images)
    if len(problem.rows) > MANY:
        tell(f"looking at {len(problem.rows):,} images; on a CPU this takes minutes", err=True)
    found = resolve_run(loaded, problem)
    written = None if out is None else _write(found, budget, out)
    if as_json:
        typer.echo(json.dumps({"out": None if out is None else str(out)} | describe(found)))
        return
    for line in _tell(found, problem.n_held_out):
        tell(line)
    if written is not None:
        tell(f"{out}: {count(written, 'row')}")


def _write(found: "Resolution", budget: int | None, out: Path) -> int:
    """The table of all labels, or a sheet of the next to label; returns how many rows it has."""
    from concont.answers.labels_file import make_labels, make_sheet, write_columns
    from concont.answers.review import choose_batch

    if budget is None:
        columns = make_labels(found)
    else:
        columns = make_sheet(found, choose_batch(found.review, found.features, budget))
    write_columns(columns, out)
    return len(columns["image"])


def describe(found: "Resolution") -> dict[str, Any]:
    """The figures of a resolution; None where nothing is known."""
    confident = None if found.confident is None else int(found.confident.sum())
    return {
        "images": len(found),
        "partial": int(found.partial.sum()),
        "unlabeled": int((~found.partial).sum()),
        "confident": confident,
        "overruled": int(found.overruled.sum()),
        "truth_known": int((found.truth >= 0).sum()),
        "accuracy": found.accuracy(),
        "accuracy_partial": found.accuracy(found.partial),
        "accuracy_unlabeled": found.accuracy(~found.partial),
        "calibration": None if found.calibration is None else asdict(found.calibration),
        "network_adds_to_votes": None if found.votes is None else found.votes.network_helps,
    }


def _tell(found: "Resolution", held: int) -> Iterator[str]:
    """The same in words, a line each; held: images that were held out of the training."""
    n, partial = len(found), int(found.partial.sum())
    yield f"{count(n, 'image')}: {partial:,} with candidate sets, {n - partial:,} unlabelled"
    if held:
        yield f"{count(held, 'image')} more {'was' if held == 1 else 'were'} held out: not listed"
    if found.confident is not None:
        sure = int(found.confident.sum())
        yield f"{sure:,} confident ({percent(sure / n)}): the score reaches the class's threshold"
    if found.overruled.any():
        yield (
            f"{count(int(found.overruled.sum()), 'set')} overruled: the label is a class "
            "outside, of which the run is surer"
        )
    if found.votes is not None:
        yield _tell_votes(found)
    if found.accuracy() is not None:
        yield _tell_accuracy(found)
    yield _tell_calibration(found)
    first = [found.images[row] for row in found.review.argsort()[:SHOWN]]
    yield f"to look at first: {', '.join(map(printable, first))}, and on by the column review"


def _tell_votes(found: "Resolution") -> str:
    assert found.votes is not None
    voted = count(len(found.votes.label), "image")
    if found.votes.network_helps:
        return f"votes and network together name the labels of {voted}"
    return (
        "nothing shows that the network adds to the votes: most of them decide the labels of "
        f"{voted}; train longer, or get more votes an image"
    )


def _tell_accuracy(found: "Resolution") -> str:
    """Of the images whose truth is known, and of each kind of them apart."""
    parts = []
    for kind, rows in (("with a set", found.partial), ("unlabelled", ~found.partial)):
        share = found.accuracy(rows)
        if share is not None:
            parts.append(f", {percent(share)} of those {kind}")
    known = int((found.truth >= 0).sum())
    return (
        f"right labels, of the {known:,} images whose true label is known: "
        f"{percent(found.accuracy())}{''.join(parts)}"
    )


def _tell_calibration(found: "Resolution") -> str:
    from concont.answers.calibration import FEWEST

    fitted = found.calibration
    if fitted is None:
        known = int((found.truth >= 0).sum())
        cure = (
            "train with --set data.holdout=0.1"
            if known >= FEWEST
            else "give the true `label` of some in the table, and train with --set data.holdout"
        )
        return f"not calibrated: that takes at least {FEWEST} held-out images ({cure})"
    return (
        f"calibrated by temperature {fitted.temperature:.3g}, fitted on {fitted.n:,} held-out "
        f"images: expected calibration error {percent(fitted.error_before)} before, "
        f"{percent(fitted.error_after)} after"
    )
