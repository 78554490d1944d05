"""`concont train`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from concont.cli.app import app, console
from concont.config.registry import HOW, registered_names
from concont.errors import Interrupted, UsageError

if TYPE_CHECKING:
    from concont.runs.settings import Settings
    from concont.runs.summary import Summary
    from concont.training.trainers import PreparedRun


@app.command()
def train(
    data: Annotated[
        str | None,
        typer.Option(help="A source of `concont datasets`, an .npz or a .mat; not with --resume."),
    ] = None,
    root: Annotated[
        str | None, typer.Option(help="Where named sources lie; else $CONCONT_DATA, or a cache.")
    ] = None,
    download: Annotated[
        bool, typer.Option("--download", help="Fetch a named source that is not there.")
    ] = False,
    recipe: Annotated[
        str | None, typer.Option(help="Settings by name or YAML file; by default the data's own.")
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            help=f"{', '.join(registered_names())}; or one of your own: {HOW}.",
        ),
    ] = None,
    labeled: Annotated[
        float | None,
        typer.Option(help="Images that keep a candidate set: a share up to 1, or a count."),
    ] = None,
    ambiguity: Annotated[
        float | None, typer.Option(help="q: the chance that a wrong label joins a set.")
    ] = None,
    unlabeled: Annotated[
        bool | None,
        typer.Option(
            "--unlabeled/--no-unlabeled",
            help="Use the other images, without labels.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seeds everything.")] = None,
    epochs: Annotated[int | None, typer.Option(help="Passes over the data.")] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu or cuda.")] = None,
    compile_: Annotated[
        bool | None,
        typer.Option(
            "--compile/--no-compile",
            help="Compile the step; by default on a GPU only.",
            show_default=False,
        ),
    ] = None,
    deterministic: Annotated[
        bool | None, typer.Option("--deterministic", help="Refuse operations that are not.")
    ] = None,
    assignments: Annotated[
        list[str] | None, typer.Option("--set", help="One setting, section.key=value; repeatable.")
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            help="Train exactly these settings, a complete config.yaml; takes no other option but "
            "--out, --overwrite, and --method for a method of your own."
        ),
    ] = None,
    print_config: Annotated[
        bool, typer.Option("--print-config", help="Show the merged settings and stop.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="The run folder; by default a dated one under runs/.")
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the run in --out.")
    ] = False,
    resume: Annotated[
        Path | None,
        typer.Option(
            help="Go on with the run in this folder; takes no other option but --method, which a "
            "method of your own needs."
        ),
    ] = None,
) -> None:
    """Train a classifier and write a run folder."""
    flags: dict[str, dict[str, Any]] = {
        "data": {
            "source": data,
            "root": root,
            "labeled": labeled,
            "ambiguity": ambiguity,
            "unlabeled": unlabeled,
            "seed": seed,
        },
        "method": {"name": method},
        "train": {
            "seed": seed,
            "epochs": epochs,
            "device": device,
            "compile": compile_,
            "deterministic": deterministic,
        },
    }
    given = {
        section: {key: value for key, value in values.items() if value is not None}
        for section, values in flags.items()
    }
    named = any((given["data"], given["train"])) or recipe or assignments or print_config
    if config is not None:
        if named or resume or download:
            raise UsageError("--config takes no other option but --out, --overwrite and --method")
        from concont.config.resolve import read_settings

        _train_settings(read_settings(config, method), out, overwrite)
        return
    if resume is not None:
        if named or download or out or overwrite:
            raise UsageError(
                "--resume takes the settings of its run; give no other option with it but --method"
            )
        _resume(resume, method)
        return
    if download and not print_config:
        _download(data or "", root)
    _train(given, recipe, assignments or [], out, overwrite, print_config)


def _download(source: str, root: str | None) -> None:
    from concont.data.named import default_root, download_source

    download_source(source, Path(root) if root else default_root())


def _train(
    flags: dict[str, Any],
    recipe: str | None,
    assignments: list[str],
    out: Path | None,
    overwrite: bool,
    print_config: bool,
) -> None:
    from concont.config.resolve import resolve, write_yaml

    settings = resolve(flags, recipe, assignments, code=flags["method"].get("name"))
    _tell_unused(flags["train"], settings)
    if print_config:
        typer.echo(write_yaml(settings), nl=False)
        return
    _train_settings(settings, out, overwrite)


def _train_settings(settings: "Settings", out: Path | None, overwrite: bool) -> None:
    from concont.runs.folder import RunFolder
    from concont.training.trainers import trainer_of

    if not settings.data.source:
        raise UsageError("say what to train on: --data NAME or FILE; see `concont datasets`")
    folder = RunFolder(out) if out else RunFolder.dated(settings.method.name)
    if overwrite:
        folder.refuse_if_not_a_run()
    else:
        folder.refuse_if_used(
            f"go on with --resume {folder.path}, start it afresh with --overwrite, "
            "or choose another --out"
        )
    run = trainer_of(settings).prepare(settings, folder)
    if overwrite:
        folder.clear()
    _execute(run)


def _tell_unused(flags: dict[str, Any], settings: "Settings") -> None:
    """Flags that say how to train a network mean nothing to a method that trains none."""
    for name in ("epochs", "compile", "deterministic"):
        if name in flags and not settings.has_epochs:
            typer.echo(f"{settings.method.name} trains no network: --{name} is not used", err=True)


def _resume(path: Path, method: str | None) -> None:
    from concont.runs.folder import RunFolder
    from concont.training.trainers import reopen_run

    folder = RunFolder(path)
    folder.require("config.yaml")
    if folder.finished:
        summary = folder.read_summary()
        typer.echo(f"{path} is finished: {_result(summary)}")
        return
    _execute(reopen_run(folder, method=method))


def _execute(run: "PreparedRun") -> None:
    from concont.cli.display import show_progress
    from concont.signals import stop_requests

    screen = console()
    try:
        with stop_requests(at_once=run.epochs is None) as stop:
            show_progress(run.execute(stop), run.epochs, run.settings.method.name, screen)
    except KeyboardInterrupt:
        begun = (run.folder / "config.yaml").is_file()
        command = run.folder.resume_command(run.settings.own_method)
        cure = f"; go on with: {command}" if begun else ""
        raise Interrupted(f"stopped{cure}") from None
    result = _result(run.folder.read_summary())
    screen.print(f"{result}\nRun: {run.folder.path}", soft_wrap=True, highlight=False)


def _result(summary: "Summary") -> str:
    from concont.cli.display import percent

    if summary.accuracy_last is None:
        return f"trained for {summary.seconds:.0f} s; there is no test set to measure on"
    found = f"{summary.evaluated_on} accuracy {percent(summary.accuracy_last)}"
    if summary.epochs is not None:
        found += f" at the last epoch, {percent(summary.accuracy_best)} at the best"
    return f"{found}, {summary.seconds:.0f} s"
