"""`concont bench --ranks`: a step on several GPUs, calculated, or measured in several processes."""

import sys
from typing import Any

import typer

from concont.cli.table import Column, print_line, print_table
from concont.ranks.world import is_started_as_rank


def start_ranks(ranks: int | None) -> None:
    """The same command in so many processes, if it is not one of them."""
    if ranks is not None and not is_started_as_rank():
        from concont.bench.ranks import run_on_ranks

        raise typer.Exit(run_on_ranks(ranks, sys.argv[1:]))


def print_ranks(figures: dict[str, Any]) -> None:
    """The calculation as a table, and what it rests on."""
    ranks, link = figures["ranks"], figures["link"]
    titles = {"more_rows": "a whole batch each", "same_rows": "a part of a batch each"}
    names = ("", "rows a rank", "compute, ms", "messages, ms", "step, ms", "images/s", "efficiency")
    cells = []
    for key, found in figures["calculated"].items():
        times = (found["compute_ms"], sum(found["message_ms"].values()), found["step_ms"])
        shown = (f"{ms:.2f}" for ms in times)
        speed = (f"{found['images_per_s']:,.0f}", f"{100 * found['efficiency']:.0f} %")
        cells.append((titles[key], found["rows_of_a_rank"], *shown, *speed))
    title = f"{ranks} ranks, a calculation: compute measured here on one, messages from their sizes"
    print_table(title, [Column(name, not name) for name in names], cells)
    sizes = figures["calculated"]["more_rows"]["messages"]
    print_line(
        f"a step sends {sizes['gradients'] / 1e6:.2f} MB of gradients, {sizes['row']} bytes a row "
        f"and {sizes['statistics'] / 1e3:.1f} kB of BatchNorm's sums, these in "
        f"{sizes['n_statistics']} messages"
    )
    print_line(
        f"assumed: {link['gb_per_s']:g} GB/s a rank, {link['latency_us']:g} us a message, and "
        "nothing sent while computing (--bandwidth, --latency)"
    )
