"""`concont bench`: how long a training step takes on this machine."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from concont.cli.app import app
from concont.cli.bench_ranks import print_ranks, start_ranks
from concont.cli.ranked import on_every_rank
from concont.cli.table import Column, print_line, print_table
from concont.config.registry import HOW
from concont.errors import UsageError
from concont.ranks.world import leads

# A CPU would take minutes for one step of the whole recipe.
CPU_SETTINGS = ["model.name=small", "train.batch_size=64"]


@app.command()
@on_every_rank
def bench(
    batch: Annotated[
        int | None, typer.Option(min=2, help="Rows of a batch; 256, on a CPU 64.")
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            help="Time these images, as `concont train` takes them, fetched and on the device; "
            "--set data.images=DIR for a table's."
        ),
    ] = None,
    image_size: Annotated[
        int | None,
        typer.Option(
            min=4, help="Side of the random images, by default 32; with --data, of image files."
        ),
    ] = None,
    images: Annotated[
        int | None, typer.Option(min=20, help="How many; 50,000, on a CPU 2,000.")
    ] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Steps of a timed block.")] = None,
    recipe: Annotated[
        str | None,
        typer.Option(help="Settings by name or YAML file; cifar10, on a CPU its small network."),
    ] = None,
    method: Annotated[
        str | None, typer.Option(help=f"concont, or another by name; or your own: {HOW}.")
    ] = None,
    methods: Annotated[
        str | None, typer.Option(help="Time the steps of these, joined by commas, or of all.")
    ] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu or cuda.")] = None,
    compile_: Annotated[
        bool | None,
        typer.Option("--compile/--no-compile", help="As in `train`.", show_default=False),
    ] = None,
    assignments: Annotated[
        list[str] | None, typer.Option("--set", help="One setting, section.key=value; repeatable.")
    ] = None,
    plain: Annotated[
        bool, typer.Option("--plain/--no-plain", help="Time the plain way beside it.")
    ] = True,
    scaling: Annotated[
        bool,
        typer.Option("--scaling", help="Time an image of ever more and larger ones, of set sizes."),
    ] = False,
    ranks: Annotated[
        int | None,
        typer.Option(
            min=2,
            help="Calculate a step on so many GPUs from this machine's and the sizes of messages; "
            "with --scaling: measure in so many processes here.",
        ),
    ] = None,
    bandwidth: Annotated[
        float | None, typer.Option(min=0.001, help="With --ranks: GB/s; 200, beyond 8 ranks 25.")
    ] = None,
    latency: Annotated[
        float | None, typer.Option(min=0.001, help="With --ranks: microseconds; 10, else 30.")
    ] = None,
    run: Annotated[
        Path | None, typer.Option(help="Show where the time of this finished run went instead.")
    ] = None,
    passing: Annotated[
        float, typer.Option(help="With --run: when this test accuracy was passed.")
    ] = 0.9046,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Time the training step against the plain way and against the machine."""
    _refuse_together(data, method, methods, scaling, run, ranks)
    if scaling:
        start_ranks(ranks)
    figures: Any
    print_figures: Callable[[Any], None]
    if run is not None:
        from concont.bench.finished_run import describe_run_time
        from concont.runs.folder import RunFolder

        figures, print_figures = describe_run_time(RunFolder(run), passing), _print_run
    else:
        from concont.bench.report import resolve_methods, time_method, time_methods, time_on_data
        from concont.bench.scaling import time_scaling
        from concont.config.resolve import resolve
        from concont.data.own_data import load_data
        from concont.device import choose_device

        given: dict[str, dict[str, Any]] = {
            "method": {"name": method},
            "train": {"batch_size": batch, "device": device, "compile": compile_},
        }
        flags: dict[str, Any] = {
            section: {key: value for key, value in values.items() if value is not None}
            for section, values in given.items()
        }
        on_gpu = choose_device(device or "auto").type == "cuda"
        small = [] if on_gpu or recipe is not None else CPU_SETTINGS
        chosen = [a for a in small if batch is None or "batch" not in a] + (assignments or [])
        asked = flags, recipe or "cifar10", chosen
        calls = (100 if on_gpu else 5) if steps is None else steps
        rows, side = images or (50_000 if on_gpu else 2_000), image_size or 32
        if scaling:
            figures, print_figures = (
                time_scaling(resolve(*asked, code=method), calls),
                _print_scaling,
            )
        elif ranks is not None:
            from concont.bench.ranks import choose_link, estimate_ranks

            link = choose_link(ranks, bandwidth, latency)
            figures = estimate_ranks(resolve(*asked, code=method), rows, side, calls, ranks, link)
            print_figures = print_ranks
        elif methods is not None:
            each = resolve_methods(methods, *asked)
            figures, print_figures = time_methods(each, rows, side, calls), _print_methods
        else:
            print_figures = _print_step
            if data is None:
                settings = resolve(*asked, code=method)
                figures = time_method(settings, rows, side, calls, plain)
            else:  # as `concont train` would
                flags["data"] = {"source": data, "image_size": image_size}
                settings = resolve(flags, recipe, assignments or [], code=method)
                figures = time_on_data(settings, load_data(settings.data), calls)
    _show(figures, print_figures, as_json)


def _refuse_together(
    data: str | None,
    method: str | None,
    methods: str | None,
    scaling: bool,
    run: Path | None,
    ranks: int | None,
) -> None:
    """Options of which only one can be meant."""
    if methods is not None and (method is not None or scaling or run is not None):
        raise UsageError("--methods stands alone: leave out --method, --scaling and --run")
    if data is not None and (methods is not None or scaling or run is not None):
        raise UsageError("--data stands alone: leave out --methods, --scaling and --run")
    if ranks is not None and any(other is not None for other in (data, methods, run)):
        raise UsageError("--ranks goes with --scaling or alone: leave out --data, --methods, --run")


def _show(figures: Any, print_figures: Callable[[Any], None], as_json: bool) -> None:
    if not leads():
        return
    if as_json:
        typer.echo(json.dumps(figures))
    else:
        print_figures(figures)


def _print_step(figures: dict[str, Any]) -> None:
    def format_ms(value: float | None) -> str:
        return "-" if value is None else f"{value:.2f}"

    size, batch = figures["image_size"], figures["batch"]
    title = f"{figures['method']}, {figures['network']}, batch {batch}, {size} x {size}"
    names = ("ms a step", "images/s", "TFLOP/s", "of the matrix rate", "views, ms")
    rows = []
    flops_of_step = figures["tflops"] * figures["step_ms"] * 1e9
    ways = {
        "concont": ("step_ms", flops_of_step, "views_ms"),
        "plain, float32": ("plain_float32_step_ms", figures.get("plain_flops"), "plain_views_ms"),
        "plain, bfloat16": ("plain_bfloat16_step_ms", figures.get("plain_flops"), "plain_views_ms"),
    }
    for name, (key, flops, views) in ways.items():
        step_ms = figures.get(key)
        if step_ms is not None:
            tflops = flops / step_ms / 1e9
            cells = (format_ms(step_ms), f"{batch / step_ms * 1000:,.0f}", f"{tflops:.3g}")
            share = f"{100 * tflops / figures['matmul_tflops']:.1f} %"
            rows.append((name, *cells, share, format_ms(figures[views])))
    columns = [Column("", is_text=True), *map(Column, names)]
    print_table(f"{title}, {figures['device']}", columns, rows)
    for line in _describe_step(figures):
        print_line(line)


def _describe_step(figures: dict[str, Any]) -> list[str]:
    """What stands below the table."""
    lines = [
        f"an epoch of 50,000 images: {figures['epoch_s']:.2f} s",
        f"views: {100 * figures['views_ms'] / figures['step_ms']:.1f} % of the step",
        f"first step: {figures['first_step_s']:.1f} s{_describe_cache(figures['warm_cache'])}",
        f"a large product of matrices: {figures['matmul_tflops']:.3g} TFLOP/s",
    ]
    if figures["step_memory_gb"] is not None:
        lines.append(f"memory beyond networks and data: {figures['step_memory_gb']:.2f} GB")
    if figures["plain_step_ms"] is not None:
        faster_step = figures["plain_step_ms"] / figures["step_ms"]
        faster_views = figures["plain_views_ms"] / figures["views_ms"]
        lines.append(
            f"faster than the plain way ({figures['plain_workers']} workers): "
            f"step {faster_step:.1f} x, views {faster_views:.1f} x"
        )
    if figures["busy"] is not None:
        fetched, there = figures["streamed_step_ms"], figures["resident_step_ms"]
        lines.append(
            f"busy {100 * figures['busy']:.0f} %: a step takes {fetched:.2f} ms where its images "
            f"are fetched, {there:.2f} ms where they lie on the device"
        )
    return lines


def _print_methods(rows: list[dict[str, Any]]) -> None:
    first = rows[0]
    title = f"{first['network']}, {first['image_size']} x {first['image_size']}, {first['device']}"
    names = ("method", "batch", "ms a step", "views, ms", "first step, s")
    cells = []
    for row in rows:
        times = (f"{row[key]:.2f}" for key in ("step_ms", "views_ms", "first_step_s"))
        cells.append((row["method"], row["batch"], *times))
    columns = [Column(name, name == "method") for name in names]
    print_table(f"A step of each method, {title}", columns, cells)


def _describe_cache(warm: bool | None) -> str:
    return {None: "", True: ", compiled before", False: ", compiled now"}[warm]


def _print_scaling(figures: dict[str, Any]) -> None:
    names = ("images", "size", "batch", "where", "ms a step", "us an image")
    cells = []
    for row in figures["rows"]:
        where = "on disk" if row["on_disk"] else "streamed" if row["streamed"] else "on the device"
        sizes = (f"{row['images']:,}", row["image_size"], row["batch"])
        cells.append((*sizes, where, f"{row['step_ms']:.2f}", f"{row['us_per_image']:.1f}"))
    print_table("Time for an image", [Column(name, name == "where") for name in names], cells)


def _print_run(figures: dict[str, Any]) -> None:
    from concont.display import percent

    by = figures["seconds_by"]
    passed = figures["passed_at_s"]
    lines = [
        f"{figures['epochs']} epochs in {figures['seconds']:.0f} s, accuracy at the last one "
        f"{percent(figures['accuracy_last'])}",
        f"first step {by['first_step']:.1f} s, steps {by['steps']:.1f} s, evaluation "
        f"{by['evaluation']:.1f} s, other {by['other']:.1f} s",
        f"evaluation and other: {percent(figures['evaluation_and_other'])}",
        f"{percent(figures['passing'])} "
        + ("never passed" if passed is None else f"first passed after {passed:.0f} s"),
    ]
    for line in lines:
        print_line(line)
