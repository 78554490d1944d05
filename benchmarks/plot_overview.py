"""Draws docs/overview.png from the records of the demo and of 260 epochs; needs matplotlib."""

import json
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

ROOT = Path(__file__).parent.parent
COLOURS = {"ConCont": "#1f6fb4", "ConCont (partial only)": "#8fb8d9", "Partial loss": "#b0b0b0"}


def read(name):
    return json.loads((ROOT / "benchmarks/results" / f"{name}.json").read_text())


def draw_demo(axes):
    seeds = read("digits-demo")["seeds"]
    for offset, (name, colour) in zip((-0.27, 0, 0.27), COLOURS.items(), strict=True):
        heights = [100 * seed["systems"][name]["accuracy_last"] for seed in seeds]
        places = [seed["seed"] + offset for seed in seeds]
        axes.bar(places, heights, width=0.25, color=colour, label=name)
    axes.set_ylim(0, 100)  # bars from 0
    axes.set_xticks([seed["seed"] for seed in seeds])
    axes.set_xlabel("seed")
    axes.set_title("Digits: 144 images with candidate sets, 1,293 without", fontsize=9)
    axes.legend(fontsize=7, loc="lower left")


def draw_training(axes):
    whole = read("cifar10-260-epochs")
    seconds = [line["seconds"] for line in whole["metrics"]]
    axes.plot(seconds, [100 * line["accuracy"] for line in whole["metrics"]], color="#1f6fb4")
    paper = 100 * whole["paper"]["accuracy"]
    axes.axhline(paper, color="#777777", linewidth=0.8, linestyle="--")
    axes.text(seconds[0], paper + 1, f"the paper's, {whole['paper']['epochs']} epochs", fontsize=8)
    axes.set_ylim(20, 100)
    axes.set_xlabel("seconds of training, one H200")
    axes.set_title("CIFAR-10: 5,000 images with candidate sets, q = 0.5", fontsize=9)


def main(path=ROOT / "docs/overview.png"):
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3))
    draw_demo(left)
    draw_training(right)
    for axes in (left, right):
        axes.set_ylabel("test accuracy, %")
        axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    main()
