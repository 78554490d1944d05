"""`concont data from-votes` and `concont data check`: annotators' votes and tables of images."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from concont.cli.app import tell
from concont.cli.data import data_app
from concont.cli.table import Column, print_table
from concont.display import percent
from concont.errors import UsageError, count, printable
from concont.runs.output import SUFFIXES, refuse_output

if TYPE_CHECKING:
    from concont.tables.agreement import Agreement
    from concont.tables.check import TableReport
    from concont.tables.problems import ProblemKind

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@data_app.command("from-votes")
def from_votes(
    votes: Annotated[
        Path,
        typer.Argument(
            help="A .csv or .parquet file with columns image, annotator and label, or with image "
            "and one column an annotator."
        ),
    ],
    images: Annotated[Path, typer.Option(help="The folder of images that the votes name.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The table, .csv or .parquet.")],
    min_votes: Annotated[
        int, typer.Option(min=1, help="How many votes make a class a candidate.")
    ] = 1,
    overwrite: Annotated[bool, typer.Option(help="Replace a table that is there.")] = False,
    as_json: AsJson = False,
) -> None:
    """Make a table of candidate sets from annotators' votes, and say how far they agree.

    A class is a candidate of an image if at least --min-votes voted for it; where no class has so
    many, those with the most are. Images of the folder that nobody voted on become unlabelled.
    """
    from concont.tables.agreement import measure_agreement
    from concont.tables.problems import Problems
    from concont.tables.votes import (
        choose_candidates,
        count_votes,
        make_rows,
        read_votes,
        write_rows,
    )

    refuse_output(out, overwrite, [votes], SUFFIXES)
    problems = Problems()
    found = read_votes(votes, images, problems)
    chosen = choose_candidates(count_votes(found), min_votes)
    agreement = measure_agreement(found, chosen)
    write_rows(make_rows(found, chosen), out)
    print_problems(problems.kinds, err=True)
    if as_json:
        typer.echo(json.dumps({"table": str(out), **asdict(agreement)}))
    else:
        _print_agreement(agreement)
        typer.echo(
            f"{printable(out)}: {count(agreement.images, 'row')}; see also `concont data check`"
        )


@data_app.command()
def check(
    table: Annotated[
        Path, typer.Argument(help="A .csv or .parquet table, or an imagefolder.", metavar="TABLE")
    ],
    images: Annotated[
        Path | None, typer.Option(help="Where its images lie; by default beside the table.")
    ] = None,
    unlabeled: Annotated[
        Path | None, typer.Option(help="A folder of further images, without labels.")
    ] = None,
    classes: Annotated[
        str | None, typer.Option(help="The classes there are: a,b,c or a file, one a line.")
    ] = None,
    decode: Annotated[
        bool, typer.Option(help="Read every image, too; without, only the table is checked.")
    ] = True,
    every: Annotated[
        bool, typer.Option("--all", help="List all problems, not the first 20 of a kind.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """List what is wrong with a table, with file and row; exit code 1 if training would refuse it.

    Errors stop training, warnings do not.
    """
    from concont.tables.check import check_table
    from concont.tables.problems import suggest_images

    known = None if classes is None else _read_classes(classes)
    with _show_reading(quiet=as_json or not decode) as progress:
        report = check_table(
            *(table, images, unlabeled),
            classes=known,
            decode=decode,
            limit=None if every else 20,
            progress=progress,
        )
    if as_json:
        typer.echo(json.dumps(asdict(report), default=str))
    else:
        print_problems(report.kinds)
        hint = suggest_images(report.kinds, table, images)
        if hint:
            tell(hint)
        tell(_summarise(report))
    raise typer.Exit(1 if report.errors else 0)


def _read_classes(given: str) -> list[str]:
    """The names of `a,b,c`, or of a file with one a line."""
    path = Path(given)
    try:
        text = path.read_text("utf-8-sig").splitlines() if path.is_file() else given.split(",")
    except UnicodeDecodeError:
        raise UsageError(f"--classes {printable(given)}: the file is not in UTF-8") from None
    names = [name.strip() for name in text if name.strip()]
    if not names:
        raise UsageError(f"--classes {printable(given)}: no name in it")
    return names


@contextmanager
def _show_reading(quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    """A bar on a terminal while images are read; nothing elsewhere."""
    from rich.console import Console
    from rich.progress import Progress

    screen = Console(stderr=True)
    if quiet or not screen.is_terminal:
        yield None
        return
    with Progress(console=screen, transient=True) as bars:
        task = bars.add_task("reading images", total=None)
        yield lambda done, total: bars.update(task, completed=done, total=total)


def print_problems(kinds: "tuple[ProblemKind, ...]", err: bool = False) -> None:
    """A line a problem, and one a kind of which there are more."""
    for kind in kinds:
        for problem in kind.problems:
            tell(f"{kind.severity}: {problem}", err=err)
        more = kind.count - len(kind.problems)
        if more:
            typer.echo(f"{kind.severity}: {more:,} more of this kind ({kind.kind})", err=err)


def _summarise(report: "TableReport") -> str:
    says_nothing = f", {report.full:,} of them with every class, which tells nothing;"
    end = says_nothing if report.full else ","
    parts = f"{report.labeled:,} with candidates{end} {report.unlabeled:,} unlabelled"
    test = f", {report.test:,} for the test" if report.test else ""
    return (
        f"{printable(report.source)}: {count(report.rows, 'row')} ({parts}{test}), "
        f"{count(len(report.classes), 'class')}: {count(report.errors, 'error')}, "
        f"{count(report.warnings, 'warning')}"
    )


def _print_agreement(agreement: "Agreement") -> None:
    alpha = "-" if agreement.alpha is None else f"{agreement.alpha:.3f}"
    _print_table(
        "Agreement of the annotators",
        ("", "figure"),
        [
            ("images with a vote", f"{agreement.voted:,} of {agreement.images:,}"),
            ("votes", f"{agreement.votes:,} by {count(agreement.annotators, 'annotator')}"),
            ("candidates of an image, on average", f"{agreement.set_size:.2f}"),
            ("unanimous, of images with two votes or more", percent(agreement.unanimous)),
            ("Krippendorff's alpha (1 agree, 0 as by chance)", alpha),
        ],
    )
    pairs = [
        (pair.first, pair.second, f"{pair.images:,}", percent(pair.share))
        for pair in agreement.confusions
    ]
    _print_table(
        "Most confused classes", ("class", "and", "images with both", "of those with either"), pairs
    )
    apart = [(who.name, f"{who.votes:,}", percent(who.agreement)) for who in agreement.apart]
    _print_table(
        "Who agrees least with the others",
        ("annotator", "votes compared", "agree"),
        apart,
    )


def _print_table(title: str, names: tuple[str, ...], rows: list[Any]) -> None:
    columns = [Column(name, k == 0 or name == "and") for k, name in enumerate(names)]
    print_table(title, columns, rows)
