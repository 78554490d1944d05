"""Ten-fold cross-validated accuracy of SSPL and PARM on real partial-label sets.

    python benchmarks/real_partial.py lost.mat ... [--hidden 0.5] [--seed 1] [--scale] > record.json

In each fold a seeded share of the training rows loses its candidate set and counts as unlabelled;
the classifiers see features and sets, and true labels only measure. Features are taken as they
are, with the classifiers' defaults; `--scale` divides each feature by its standard deviation in the
training rows first.
"""

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
import torch
from sklearn.model_selection import KFold

import concont
from concont.data.sources import load
from concont.errors import ConcontError
from concont.training.recorder import describe_environment

FOLDS = 10


def score_fold(make, data, train, test, hidden, seed, scale):
    """Accuracy on one fold, and whether the classifier warned."""
    x, sets = data.x_train.astype(np.float64), data.candidates[train].copy()
    if scale:
        spread = x[train].std(axis=0)
        x = x / np.where(spread > 0, spread, 1)
    lost = np.random.RandomState(seed).permutation(len(train))[: round(hidden * len(train))]
    sets[lost] = True
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        model = make().fit(x[train], sets)
    right = model.predict(x[test]) == data.y_train[test]
    return float(right.mean()), [str(w.message) for w in warned]


def cross_validate(make, data, hidden, seed, scale):
    """Mean and standard deviation over the folds."""
    start, folds = time.perf_counter(), KFold(FOLDS, shuffle=True, random_state=seed)
    rows = np.arange(len(data.x_train))
    scores = [
        score_fold(make, data, train, test, hidden, seed + n, scale)
        for n, (train, test) in enumerate(folds.split(rows))
    ]
    accuracies = [accuracy for accuracy, _ in scores]
    return {
        "mean": float(np.mean(accuracies)),
        "std": float(np.std(accuracies)),
        "folds": accuracies,
        "warnings": sorted({text for _, texts in scores for text in texts}),
        "seconds": time.perf_counter() - start,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--hidden", type=float, default=0.5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scale", action="store_true")
    options = parser.parse_args()
    classifiers = {"SSPL": concont.SSPLClassifier, "PARM": concont.PARMClassifier}
    rows = []
    for path in options.files:
        try:
            data = load(str(path))
        except ConcontError as error:
            parser.exit(error.exit_code, f"{error}\n")
        for name, make in classifiers.items():
            figures = cross_validate(make, data, options.hidden, options.seed, options.scale)
            rows.append({"data": path.stem, "digest": data.digest, "method": name, **figures})
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    settings = {
        "hidden": options.hidden,
        "seed": options.seed,
        "scale": options.scale,
        "folds": FOLDS,
    }
    print(
        json.dumps(
            {**settings, "rows": rows, "environment": describe_environment(device)}, indent=1
        )
    )


if __name__ == "__main__":
    main()
