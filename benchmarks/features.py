"""What a network learns of features, and how long that takes.

    python benchmarks/features.py compare lost.mat ... --seeds 1 2 > record.json
    python benchmarks/features.py speed > record.json

`compare` trains ConCont with the recipe `features`, SSPL and PARM on the very same rows of real
partial-label sets: a fifth of the rows is held out, half of the others keep their candidate set.
SSPL and PARM see the features as they are, and once more each divided by its standard deviation.

`speed` makes 50,000 rows of 512 features in 10 classes, a tenth of them with a candidate set, and
times the command on them: wall and processor time, the start of Python included.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression

import concont
from concont.data.sources import load
from concont.training.recorder import describe_environment

HELD, LABELED = 0.2, 0.5
ROWS, TESTS, SIZE, CLASSES, CLUSTERS, INNER, APART = 50_000, 10_000, 512, 10, 4, 32, 1.7
METHODS = {"ConCont": "concont", "SSPL": "sspl", "PARM": "parm"}


def compare(files, seeds):
    """A row a data set and method: accuracies on the held-out rows, and seconds."""
    rows = []
    for path in files:
        data = load(str(path))
        plain = {"candidates": data.candidates, "y_train": data.y_train}
        spread = data.x_train.std(axis=0)
        scaled = data.x_train / np.where(spread > 0, spread, 1)
        for label, method in METHODS.items():
            kinds = [(label, data.x_train)]
            if method != "concont":  # whose network scales features itself
                kinds.append((f"{label}, scaled", scaled))
            for name, x in kinds:
                found = [train({"x_train": x, **plain}, method, seed) for seed in seeds]
                row = {"data": path.stem, "digest": data.digest, "method": name}
                rows.append({**row, "accuracies": [a for a, _ in found], "seconds": found[0][1]})
                print(rows[-1], file=sys.stderr)
    return {"held": HELD, "labeled": LABELED, "seeds": seeds, "rows": rows}


def train(arrays, method, seed):
    """Accuracy on the held-out rows of a run, and its seconds."""
    data = {"holdout": HELD, "labeled": LABELED, "unlabeled": True, "seed": seed}
    config = {"data": data, "method": {"name": method}, "train": {"seed": seed, "device": "cpu"}}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        summary = concont.train(config, data=arrays, out=Path(folder) / "run").summary
    return summary["accuracy_last"], summary.seconds


def make_clusters(seed=0):
    """Rows whose classes are four clusters each, in a plane of 32 dimensions, and noise around."""
    stream, n = np.random.RandomState(seed), ROWS + TESTS
    centres = APART * stream.randn(CLASSES * CLUSTERS, INNER)
    cluster = stream.randint(0, len(centres), n)
    inner = centres[cluster] + stream.randn(n, INNER)
    x = inner @ stream.randn(INNER, SIZE) / np.sqrt(INNER) + 0.5 * stream.randn(n, SIZE)
    return x.astype(np.float32), (cluster % CLASSES).astype(np.int64)


def measure_speed():
    """The command on such rows, and what a linear model makes of the rows with sets."""
    x, y = make_clusters()
    arrays = {"x_train": x[:ROWS], "y_train": y[:ROWS], "x_test": x[ROWS:], "y_test": y[ROWS:]}
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder) / "rows.npz", Path(folder) / "run"
        np.savez(path, **arrays)
        words = ["train", "--data", path, "--labeled", "0.1", "--ambiguity", "0.3", "--out", out]
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        command = [sys.executable, "-m", "concont", *words, "--device", "cpu"]
        subprocess.run(command, check=True, stdout=sys.stderr)  # the record is what is printed
        wall = time.perf_counter() - began
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        run = concont.load(out, device="cpu")
        sets = np.load(out / "candidates.npz")
        linear = fit_linear(arrays, sets["candidates"], sets["labeled"])
    return {
        "rows": ROWS,
        "features": SIZE,
        "classes": CLASSES,
        "wall_seconds": wall,
        "processor_seconds": used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime,
        "load": os.getloadavg()[0],
        "epochs": run.summary.epochs,
        "steps": run.summary["steps"],
        "accuracy": run.summary["accuracy_last"],
        "accuracy_linear": linear,
    }


def fit_linear(arrays, candidates, labeled):
    """Accuracy of a linear model of the rows with sets: each of their labels in its share."""
    rows = np.flatnonzero(labeled)
    places, labels = np.nonzero(candidates[rows])
    shares = 1 / candidates[rows].sum(axis=1)
    model = LogisticRegression(max_iter=200, C=0.01)
    model.fit(arrays["x_train"][rows][places], labels, sample_weight=shares[places])
    return float(model.score(arrays["x_test"], arrays["y_test"]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["compare", "speed"])
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2])
    options = parser.parse_args()
    found = compare(options.files, options.seeds) if options.what == "compare" else measure_speed()
    environment = describe_environment(torch.device("cpu"))
    environment["command"] = [Path(word).name for word in sys.argv]
    print(json.dumps({**found, "environment": environment}, indent=1))


if __name__ == "__main__":
    main()
