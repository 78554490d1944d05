"""The demo over several seeds, as a record: on the test images or on a training hold-out.

python benchmarks/digits.py 1 2 3 4 5 --out benchmarks/results/digits-demo.json
python benchmarks/digits.py 101 102 --holdout 0.2 --out benchmarks/results/digits-recipe.json
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

import torch

from concont.cli.demo_run import prepare_systems
from concont.training.recorder import describe_environment

KEPT = ("accuracy_last", "accuracy_best", "evaluated_on", "steps", "batch_size", "settings_hash")


def run_seed(seed: int, holdout: float) -> dict:
    """The figures of the three systems for a seed."""
    figures = {}
    with tempfile.TemporaryDirectory() as folder:
        for title, run in prepare_systems(seed, Path(folder), holdout).items():
            for _ in run.execute():
                pass
            summary = run.folder.read_summary()
            figures[title] = {name: summary[name] for name in KEPT}
            figures[title]["seconds"] = round(summary.seconds, 1)
    ours, *others = (row["accuracy_last"] for row in figures.values())
    print(seed, {title: round(100 * row["accuracy_last"], 2) for title, row in figures.items()})
    return {"seed": seed, "ahead": ours > max(others), "systems": figures}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seeds", type=int, nargs="+")
    parser.add_argument("--holdout", type=float, default=0.0)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    record = {
        "command": " ".join(["python", "benchmarks/digits.py", *sys.argv[1:]]),
        "environment": describe_environment(torch.device("cpu")),
        "seeds": [run_seed(seed, options.holdout) for seed in options.seeds],
    }
    record["environment"].pop("command")
    options.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
