"""The tables of times, of memory, and of how far the fast way is from the plain one."""

from typing import Any

from tables_common import Rows, record, table


def bench(command: str, commit: str) -> Any:
    """What a command measured at a commit."""
    for one in record("speed-h200")["measurements"]:
        figures = one["figures"]
        at = one.get("environment") or figures["environment"]
        if (one["command"], at["commit"]) == (command, commit):
            return figures
    raise KeyError(command)


def timed(method: str) -> dict[str, Any]:
    """A method's newest step."""
    whole = record("methods-h200")
    return {one["method"]: one for one in [*whole["before"], *whole["after"]]}[method]


@table
def step() -> Rows:
    now, first = timed("concont"), bench("concont bench --json", "7650180")
    plain = bench("concont bench --json", "cc428c2")
    empty = "TORCHINDUCTOR_CACHE_DIR=EMPTY concont bench"
    cold = bench(f"{empty} --no-plain --steps 30 --json", "7650180")
    large = bench(f"{empty} --batch 1024 --no-plain --steps 30 --json", "7650180")
    long = record("cifar10-260-epochs")["summary"]["seconds_by"]

    def ms(one: dict[str, Any], key: str, digits: int = 1) -> str:
        return f"{one[key]:.{digits}f} ms"

    def rate(one: dict[str, Any]) -> str:
        return f"{one['tflops']:.0f} of {one['matmul_tflops']:.0f} TFLOP/s"

    def times(key: str) -> str:
        return f"{plain[key] / plain['step_ms']:.1f} times as long"

    return [
        ["what", "measured", "commit"],
        ["ConCont step, batch 256, all included", ms(now, "step_ms", 2), "91c49c5"],
        ["an epoch of 50,000 images", f"{now['epoch_s']:.2f} s", "91c49c5"],
        ["the same, batch 1024", ms(large, "step_ms"), "7650180"],
        ["an epoch", f"{large['epoch_s']:.2f} s", "7650180"],
        ["views (three an image), within the step", ms(now, "views_ms", 2), "91c49c5"],
        ["achieved rate, and that of a large bfloat16 product of matrices", rate(now), "91c49c5"],
        ["first step, compile cache empty", f"{cold['first_step_s']:.1f} s", "7650180"],
        ["first step, compile cache filled", f"{first['first_step_s']:.1f} s", "7650180"],
        ["first step, first process on a new machine", f"{long['first_step']:.1f} s", "7650180"],
        [
            "memory beyond networks and data, batch 256 / 1024",
            f"{first['peak_memory_gb']:.1f} / {large['peak_memory_gb']:.1f} GB",
            "7650180",
        ],
        ["ConCont step when the plain way was timed", ms(plain, "step_ms", 2), "cc428c2"],
        [
            "the plain way, 16 workers, bfloat16",
            f"{ms(plain, 'plain_bfloat16_step_ms')}, {times('plain_bfloat16_step_ms')}",
            "cc428c2",
        ],
        [
            "the plain way, 16 workers, float32 with TF32",
            f"{ms(plain, 'plain_float32_step_ms')}, {times('plain_float32_step_ms')}",
            "cc428c2",
        ],
        [
            "of these, the network alone, bfloat16 / float32",
            f"{plain['plain_bfloat16_network_ms']:.1f} / {ms(plain, 'plain_float32_network_ms')}",
            "cc428c2",
        ],
        ["views of a batch by 16 workers, one machine", ms(first, "plain_views_ms"), "7650180"],
        ["the same on another machine", ms(plain, "plain_views_ms"), "cc428c2"],
    ]


@table
def step_cpu() -> Rows:
    figures = record("speed-cpu")["figures"]
    ratio = figures["plain_views_ms"] / figures["views_ms"]
    return [
        ["two CPU cores, batch 64, the small network", "concont", "the plain way"],
        ["step", f"{figures['step_ms']:.0f} ms", f"{figures['plain_step_ms']:.0f} ms"],
        [
            f"views alone ({ratio:.1f} times faster)",
            f"{figures['views_ms']:.1f} ms",
            f"{figures['plain_views_ms']:.1f} ms",
        ],
    ]


@table
def method_steps() -> Rows:
    passes = {
        "concont": "3 / 1.1",
        "dpll": "3 / 3",
        "pico": "2 / 1",
        "lws": "2 / 1",
        "partial": "1 / 1",
        "proden": "1 / 1",
        "supervised": "1 / 1",
    }
    before = {one["method"]: one for one in record("methods-h200")["before"]}
    rows = [["method", "ms", "commit", "at cc428c2", "passes of 256 images, forward / backward"]]
    for name, number in passes.items():
        one = timed(name)
        steps = [f"{one['step_ms']:.2f}", one["environment"]["commit"][:7]]
        rows.append([f"`{name}`", *steps, f"{before[name]['step_ms']:.2f}", number])
    return rows


@table
def pico_kernels() -> Rows:
    whole = record("pico-kernels")
    return [
        ["PiCO's step under the profiler", "ms"],
        ["from first to last kernel", f"{whole['span_us'] / 1000:.2f}"],
        ["the GPU is busy", f"{whole['busy_us'] / 1000:.2f}"],
        [
            "its kernels, added up (those of the two networks overlap)",
            f"{whole['sum_us'] / 1000:.2f}",
        ],
    ]


@table
def scaling() -> Rows:
    rows = [["images", "size", "batch", "where", "microseconds an image"]]
    for one in bench("concont bench --scaling --json --steps 60", "7650180"):
        where = "streamed from a mapped file" if one["streamed"] else "on the device"
        size = f"{one['image_size']} x {one['image_size']}"
        time = f"{one['us_per_image']:.1f}"
        rows.append([f"{one['images']:,}", size, str(one["batch"]), where, time])
    return rows


def _share(value: float) -> str:
    return f"{100 * value:.2g} %"


@table
def twenty_steps_apart() -> Rows:
    rows = [["fast against eager, 20 steps, commit cc428c2", "losses, at most", "weights"]]
    script = "python benchmarks/fast_equals_plain.py"
    for words in (script, f"{script} --float32"):
        one = bench(words, "cc428c2")
        apart = [_share(max(one["loss_apart"])), _share(one["weights_apart"])]
        rows.append([one["precision"], *apart])
    return rows


@table
def gradient_errors() -> Rows:
    rows = [["error of one gradient, at the start, after 20 steps", "fast", "eager", "commit"]]
    script = "python benchmarks/fast_equals_plain.py"
    for words, commit in ((f"{script} --float32", "a8498fc"), (script, "91c49c5")):
        one = bench(words, commit)
        errors = one["gradient_errors"]
        cells = [
            ", ".join(_share(errors[when][way]) for when in ("at the start", "after 20 steps"))
            for way in ("fast", "eager")
        ]
        rows.append([one["precision"], *cells, commit])
    return rows


@table
def rearranged_step() -> Rows:
    return [
        ["tree", "commit", "step", "first step", "memory beyond networks and data"],
        *(
            [
                row["tree"],
                row["commit"],
                f"{row['step_ms']:.2f} ms",
                f"{row['first_step_s']:.1f} s",
                f"{row['step_memory_gb']:.2f} GB",
            ]
            for row in record("rearranged-step-h200")["rows"]
        ),
    ]


@table
def stems_cpu() -> Rows:
    """What stems that fit the image's size save."""
    stems = ("whole", "half", "quarter")
    rows = [["seconds of one core a step", *(f"`{stem}`" for stem in stems)]]
    for step in record("stems-cpu")["steps"]:
        name = f"`{step['network']}`, {step['images']} images of {step['size']} px"
        rows.append([name, *(str(step.get(stem, "")) for stem in stems)])
    return rows


@table
def own_data_cpu() -> Rows:
    """Images of one's own on two cores: what was measured, from the folder to the classifier."""
    found = record("own-data-cpu")
    trial, check, cache = found["trial"], found["table_check"], found["image_cache"]
    both = found["two_trainings"]
    speed = [a / b for a, b in zip(cache["images_per_s"], cache["bare_images_per_s"], strict=True)]
    second = max(found["second_start"]["seconds"])
    return [
        ["what", "measured"],
        ["test accuracy, `own-cpu`", f"{100 * trial['accuracy']:.2f} %"],
        ["the whole command", f"{trial['whole_command_seconds']} s"],
        ["test accuracy, SSPL on the same images", f"{100 * trial['sspl']['accuracy']:.2f} %"],
        ["SSPL's time", f"{trial['sspl']['seconds']} s"],
        [
            f"`concont data check --no-decode`, {check['rows']:,} rows",
            f"{check['seconds']:.1f} s, {check['peak_memory_gb']:.1f} GB",
        ],
        [
            "JPEGs of 500 x 375 to 224 x 224, decoded and kept",
            f"{min(cache['images_per_s'])} to {max(cache['images_per_s'])} images/s",
        ],
        [
            "of what the bare decoder does on the same cores",
            f"{100 * min(speed):.0f} to {100 * max(speed):.0f} %",
        ],
        [f"the second start, {found['second_start']['images']:,} images", f"{second:.2f} s"],
        [
            "two trainings at once on digits; one alone",
            f"{both['two_at_once_s']:.1f} s; {both['alone_s']:.1f} s",
        ],
    ]
