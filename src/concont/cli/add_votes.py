"""`concont data add-votes`: answers go back into a table."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from concont.cli.data import data_app
from concont.cli.tables import AsJson, print_problems
from concont.errors import count, printable

if TYPE_CHECKING:
    from concont.tables.add_votes import AddedVotes


@data_app.command("add-votes")
def add_votes(
    table: Annotated[
        Path, typer.Argument(help="A .csv or .parquet table of candidate sets.", metavar="TABLE")
    ],
    votes: Annotated[
        Path,
        typer.Argument(
            help="New votes, as `data from-votes` reads them; a row with an empty label is no vote."
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The new table, .csv or .parquet.")],
    images: Annotated[
        Path | None,
        typer.Option(help="The folder of the table's images; by default beside the table."),
    ] = None,
    min_votes: Annotated[
        int, typer.Option(min=1, help="How many votes make a class a candidate.")
    ] = 1,
    replace: Annotated[
        bool,
        typer.Option("--replace", help="New votes take the place of the row's earlier ones."),
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a table that is there; -o may be TABLE.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Add votes to a table of candidate sets: its counts grow, and its candidates follow them.

    A row without counts has one vote for each candidate. Rows that get no votes stay as they are.
    An image of the folder that is in no row becomes one. With --replace the new votes alone count
    on the images that they name: an expert's answer settles them.
    """
    from concont.tables.add_votes import add_votes
    from concont.tables.problems import Problems
    from concont.tables.votes import refuse_output, write_rows

    refuse_output(out, votes, overwrite)
    problems = Problems()
    rows, report = add_votes(table, votes, problems, images, min_votes, replace)
    write_rows(rows, out)
    print_problems(problems.kinds, err=True)
    if as_json:
        typer.echo(json.dumps({"table": str(out), **asdict(report)}))
    else:
        typer.echo(_describe(report, out))


def _describe(report: "AddedVotes", out: Path) -> str:
    new = f", {report.added:,} of them new" if report.added else ""
    lines = [
        f"{count(report.votes, 'vote')} on {count(report.voted, 'row')}{new}",
        f"one candidate now, and not before: {count(report.single, 'row')}",
        f"the same candidates as before: {count(report.unchanged, 'row')}",
    ]
    if report.left_out:
        lost = f"{count(report.left_out, 'vote')} for a class with too few to be a candidate"
        lines.append(f"left out: {lost}")
    return "\n".join([*lines, f"{printable(out)}: {count(report.rows, 'row')}"])
