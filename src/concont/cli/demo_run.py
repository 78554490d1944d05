"""The demonstration on digits: ConCont beside what can be had without the unlabelled images."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from concont.cli.display import percent, show_progress
from concont.cli.lost_output import output_may_end
from concont.config.resolve import resolve
from concont.runs.folder import RunFolder
from concont.runs.summary import Summary
from concont.training.network_run import NetworkRun
from concont.training.prepare import prepare

SYSTEMS: dict[str, dict[str, Any]] = {
    "ConCont": {},
    "ConCont (partial only)": {"data": {"unlabeled": False}},
    "Partial loss": {"method": {"name": "partial"}},
}


def prepare_systems(seed: int, out: Path, holdout: float = 0.0) -> dict[str, NetworkRun]:
    """The three systems on the same data and seed, with as many steps of as many rows each."""
    ready: dict[str, NetworkRun] = {}
    for title, flags in SYSTEMS.items():
        own = flags.get("data", {})
        data = {"source": "digits", "seed": seed, "holdout": holdout, **own}
        settings = resolve({**flags, "data": data, "train": {"seed": seed}})
        folder = RunFolder(out / title.lower().replace(" ", "-").replace("(", "").replace(")", ""))
        run = prepare(settings, folder)
        if ready:  # fewer rows make shorter epochs: train for more of them
            steps = ready["ConCont"].total_steps
            epochs, rest = divmod(steps, run.order.steps)
            assert rest == 0, f"{steps} steps are not a whole number of epochs of {run.order.steps}"
            every = settings.train.evaluate_every * epochs // ready["ConCont"].settings.train.epochs
            train = replace(settings.train, epochs=epochs, evaluate_every=every)
            run = prepare(replace(settings, train=train), folder)
        ready[title] = run
    return ready


@output_may_end()
def compare_systems(
    seed: int, out: Path, console: Console, stop: Callable[[], bool]
) -> dict[str, Summary]:
    """Train the three and print the table; returns their summaries."""
    summaries = {}
    for title, run in prepare_systems(seed, out).items():
        show_progress(run.execute(stop), run.epochs, title, console)
        summaries[title] = run.folder.read_summary()
    console.print(make_table(summaries))
    console.print(f"Runs: {out}", soft_wrap=True, highlight=False)
    return summaries


def make_table(summaries: dict[str, Summary]) -> Table:
    """Last-epoch accuracy on the test images, a row a system."""
    first = next(iter(summaries.values()))
    grid = Table(
        title=f"Digits, {first.labeled:.0%} of the images with candidate sets, "
        f"q = {first.ambiguity}, seed {first.seed}",
        caption="test images, last epoch; the same sets, steps and batch size for all",
    )
    grid.add_column("system", no_wrap=True)
    for name in ("unlabelled", "steps", "batch", "seconds", "accuracy"):
        grid.add_column(name, justify="right")
    for title, summary in summaries.items():
        grid.add_row(
            title,
            "yes" if summary.unlabeled else "no",
            str(summary.steps),
            str(summary.batch_size),
            f"{summary.seconds:.0f}",
            percent(summary.accuracy_last),
        )
    return grid
