"""The tables of one training on several GPUs: what was measured, and what is calculated."""

from typing import Any

from tables_common import Rows, record, table

from concont.bench.ranks import Messages, calculate_messages_ms, choose_link

BATCH = 256  # rows of a rank


def measured(option: str) -> Any:
    """The figures of the command with this option."""
    found = [m for m in record("ranks-cpu")["measurements"] if option in m["command"]]
    (one,) = found
    return one["figures"]


@table
def ranks_scaling() -> Rows:
    rows = [["images", "size", "batch", "where", "milliseconds an image"]]
    for one in measured("--scaling")["rows"]:
        where = "streamed from a mapped file" if one["streamed"] else "in main memory"
        size = f"{one['image_size']} x {one['image_size']}"
        time = f"{one['us_per_image'] / 1000:.1f}"
        rows.append([f"{one['images']:,}", size, str(one["batch"]), where, time])
    return rows


@table
def ranks_calculation() -> Rows:
    (sizes,) = {
        tuple(sorted(way["messages"].items()))
        for way in measured("--ranks 8")["calculated"].values()
    }
    steps = [row["step_ms"] for row in record("rearranged-step-h200")["rows"]]
    compute, rows = sum(steps) / len(steps), []
    for ranks in (8, 64):
        link = choose_link(ranks)
        parts = calculate_messages_ms(Messages(**dict(sizes)), BATCH, ranks, link)
        alone = compute + parts["gradients"] + parts["rows"]
        total = alone + parts["statistics"]
        rows.append(
            [
                f"{ranks}, {link.gb_per_s:g} GB/s, {link.latency_us:g} microseconds",
                f"{BATCH * ranks:,}",
                *(f"{parts[name]:.2f} ms" for name in ("gradients", "rows", "statistics")),
                f"{total:.1f} ms, {100 * compute / total:.0f} %",
                f"{alone:.1f} ms, {100 * compute / alone:.0f} %",
            ]
        )
    return [
        [
            *("GPUs, a link's rate and latency", "batch", "gradients", "rows", "BatchNorm"),
            *("the step, and its efficiency", "with BatchNorm of a rank's own"),
        ],
        *rows,
    ]
