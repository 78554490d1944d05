"""`concont datasets` and `concont data`: what there is, and the very same sets and views again."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from concont.cli.app import app, tell
from concont.cli.run_data import list_inputs
from concont.cli.table import Column, print_table
from concont.errors import UsageError
from concont.runs.output import refuse_output

if TYPE_CHECKING:
    from concont.runs.settings import Data

data_app = typer.Typer(
    no_args_is_help=True, help="Tables, votes and candidate sets as files, and views as pictures."
)
app.add_typer(data_app, name="data")

Source = Annotated[str | None, typer.Option("--data", help="A named source or an .npz file.")]
Root = Annotated[str | None, typer.Option(help="Where named sources lie.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace a file that is there.")]


@app.command()
def datasets(
    root: Root = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the named sources: sizes, where they are looked for, and whether they are there."""
    from concont.data.named import NAMED, default_root, find_source

    where = Path(root) if root else default_root()
    rows: list[dict[str, Any]] = [
        {"name": "digits", "train": 1437, "test": 360, "shape": [8, 8], "classes": 10}
        | {"found": "scikit-learn"}
    ]
    for name, source in NAMED.items():
        path = find_source(name, where)
        rows.append(
            {"name": name, "train": source.n_train, "test": source.n_test}
            | {"shape": list(source.shape), "classes": source.n_classes}
            | {"found": None if path is None else str(path)}
        )
    if as_json:
        typer.echo(json.dumps({"root": str(where), "sources": rows}))
    else:
        _print_sources(where, rows)


def _print_sources(where: Path, rows: list[dict[str, Any]]) -> None:
    texts = ("name", "found")
    names = ("name", "train", "test", "image", "classes", "found")
    cells = []
    for row in rows:
        shape = " x ".join(map(str, row["shape"]))
        sizes = (f"{row['train']:,}", f"{row['test']:,}", shape, row["classes"])
        cells.append((row["name"], *sizes, row["found"] or "no"))
    columns = [Column(name, name in texts) for name in names]
    print_table(f"Named sources; looked for under {where}", columns, cells)


@data_app.command()
def candidates(
    source: Source = None,
    root: Root = None,
    labeled: Annotated[
        float | None, typer.Option(help="Images that keep a set: a share up to 1, or a count.")
    ] = None,
    ambiguity: Annotated[
        float | None, typer.Option(help="q: the chance that a wrong label joins a set.")
    ] = None,
    noise: Annotated[
        float | None, typer.Option(help="The chance that a set misses the true label.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Of split and sets.")] = None,
    out: Annotated[Path | None, typer.Option(help="The file to write, .npz.")] = None,
    overwrite: Overwrite = False,
    read: Annotated[Path | None, typer.Option(help="A file to read back and check.")] = None,
) -> None:
    """Write the split and the candidate sets to a file, or read one back; prints their hash.

    Train on such a file with `concont train --set data.candidates=FILE`.
    """
    if (read is None) == (out is None):
        raise UsageError("give either --out FILE to write, or --read FILE")
    if read is not None:
        from concont.data.candidate_file import read_candidate_sets

        _print_sets(read_candidate_sets(read))
        return
    flags = {"source": source, "root": root, "labeled": labeled, "ambiguity": ambiguity}
    settings = _data_settings({**flags, "noise": noise, "seed": seed})
    assert out is not None
    refuse_output(out, overwrite, list_inputs(settings), (".npz",))
    from concont.data.own_data import load_data
    from concont.data.problem import make_candidate_sets

    sets = make_candidate_sets(load_data(settings), settings)
    sets.write(out)
    _print_sets(sets)


def _data_settings(flags: dict[str, Any]) -> "Data":
    from concont.config.resolve import resolve

    given = {name: value for name, value in flags.items() if value is not None}
    if "source" not in given:
        raise UsageError("no data is named: give --data NAME, or --data FILE.npz")
    return resolve({"data": given}).data


def _print_sets(sets: Any) -> None:
    kept = sets.candidates[sets.labeled]
    tell(
        f"hash {sets.hash}",
        f"data {sets.data}",
        f"{len(kept)} of {len(sets.labeled)} rows keep a set, {sets.candidates.shape[1]} classes, "
        f"{kept.sum(axis=1).mean():.3f} labels on average",
    )


@data_app.command()
def views(
    source: Source = None,
    root: Root = None,
    seed: Annotated[int, typer.Option(help="Of images and draws.")] = 1,
    images: Annotated[int, typer.Option(min=1, max=64, help="How many images.")] = 8,
    out: Annotated[Path, typer.Option(help="The picture to write, .png.")] = Path("views.png"),
    overwrite: Overwrite = False,
) -> None:
    """Draw what the network sees: weak and strong views of the same images."""
    from concont.augment.contact_sheet import draw_contact_sheet
    from concont.config.resolve import resolve
    from concont.data.own_data import load_data
    from concont.runs.folder import write_whole

    settings = _data_settings({"source": source, "root": root})
    refuse_output(out, overwrite, list_inputs(settings), (".png",))
    chosen = resolve({"data": {"source": settings.source}}).views
    data = load_data(settings)
    if data.x_train.ndim == 2:
        raise UsageError("this data holds features, of which there is nothing to draw")
    sheet = draw_contact_sheet(data.x_train, chosen, images, seed)
    write_whole(out, lambda temporary: sheet.save(temporary, "png", optimize=True))
    tell(out)
