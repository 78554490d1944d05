"""The demonstration on digits: ConCont beside what can be had without the unlabelled images."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from concont.cli.lost_output import output_may_end
from concont.cli.table import Column, print_line, print_table
from concont.config.resolve import resolve
from concont.display import percent, show_progress
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
    print_summaries(summaries)
    print_line(f"Runs: {out}")
    return summaries


def print_summaries(summaries: dict[str, Summary]) -> None:
    """Last-epoch accuracy on the test images, a row a system."""
    first = next(iter(summaries.values()))
    names = ("unlabelled", "steps", "batch", "seconds", "accuracy")
    rows = [
        (
            *(title, "yes" if summary.unlabeled else "no", summary.steps, summary.batch_size),
            *(f"{summary.seconds:.0f}", percent(summary.accuracy_last)),
        )
        for title, summary in summaries.items()
    ]
    print_table(
        f"Digits, {first.labeled:.0%} of the images with candidate sets, "
        f"q = {first.ambiguity}, seed {first.seed}",
        [Column("system", is_text=True), *map(Column, names)],
        rows,
    )
    print_line("test images, last epoch; the same sets, steps and batch size for all")
