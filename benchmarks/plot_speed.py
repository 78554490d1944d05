"""Draws docs/speed.png from benchmarks/results/speed-h200.json; needs matplotlib."""

import json
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

ROOT = Path(__file__).parent.parent


def main():
    record = json.loads((ROOT / "benchmarks/results/speed-h200.json").read_text())
    by_command = {m["command"]: m["figures"] for m in record["measurements"]}
    step = by_command["concont bench --json"]
    rows = by_command["concont bench --scaling --json --steps 60"]
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), width_ratios=(3, 2))

    work = step["tflops"] * step["step_ms"]
    bars = {
        f"plain: the views alone,\n{step['plain_workers']} workers": step["plain_views_ms"],
        "concont: the whole step": step["step_ms"],
        "its arithmetic at the\nmeasured matrix rate": work / step["matmul_tflops"],
    }
    colours = ["#b0b0b0", "#1f6fb4", "#dddddd"]
    drawn = left.barh(list(bars), list(bars.values()), color=colours)
    left.bar_label(drawn, fmt="%.1f", padding=3)
    left.invert_yaxis()
    left.set_xlim(0, 1.12 * max(bars.values()))
    left.set_xlabel("ms a batch of 256, three views an image")

    same = [row for row in rows if row["image_size"] == 32]
    counts, times = ([row[name] for row in same] for name in ("images", "us_per_image"))
    right.plot(counts, times, "o-", color="#1f6fb4")
    right.set_xscale("log")
    right.set_ylim(0, 1.4 * max(times))
    right.set_xlabel("images in the data set")
    right.set_ylabel("microseconds an image")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(ROOT / "docs/speed.png", dpi=110)


if __name__ == "__main__":
    main()
