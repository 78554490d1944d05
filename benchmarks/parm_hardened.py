"""What hardened labels do to PARM's machine on CIFAR-10.

    python benchmarks/parm_hardened.py [--root DATA] [--seed 1] --out record.json

10 % of the training images have candidate sets. PARM sees GIST of those whose set is not full, and
no unlabelled image. Their labels are spread, and the machine learns from them as they are, or
hardened: all to the likeliest class, which is what PARM makes of sets of one label. True labels
only measure: test accuracy, how often the likeliest label is right, how often it has a majority.
"""

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
import torch

from concont import PARMClassifier
from concont.classic.features import compute_features
from concont.config.resolve import resolve
from concont.data.problem import make_problem
from concont.data.sources import load
from concont.errors import ConcontError
from concont.training.recorder import describe_environment

LABELED, AMBIGUITIES, LAMS = 0.1, (0.3, 0.5, 0.7), (1.0, 10_000.0)
SIZE = 32  # of the images that GIST sees
STEPS = 10_000  # enough for every machine to come within the tolerance


def fit_machine(lam, x, sets, test, truth):
    """The fitted classifier, and what is to be said of its machine."""
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        # Without unlabelled rows nothing changes after the first round.
        model = PARMClassifier(lam, rounds=1, max_steps=STEPS, device="cpu").fit(x, sets)
    second, first = np.sort(model.decision_function(x), axis=1)[:, -2:].T
    return model, {
        "lam": lam,
        "accuracy": float((model.predict(test) == truth).mean()),
        "rows_at_the_margin": float((first - second >= 0.99).mean()),  # 1, but for rounding
        "gain": model.gain_,
        "gap": model.gap_,
        "steps": model.steps_,
        "warnings": sorted({str(w.message) for w in warned}),
        "seconds": time.perf_counter() - start,
    }


def compare_at(ambiguity, data, seed):
    """All machines at a share of wrong candidates, and what their labels are worth."""
    given = {"source": "cifar10", "labeled": LABELED, "ambiguity": ambiguity, "unlabeled": False}
    problem = make_problem(data, resolve({"data": {**given, "seed": seed}}, None, []).data)
    kept = ~problem.candidates.all(axis=1)
    x = compute_features(problem.images, SIZE, "cpu")[kept]
    test, truth = compute_features(problem.test_images, SIZE, "cpu"), problem.test_labels
    spread = [fit_machine(lam, x, problem.candidates[kept], test, truth) for lam in LAMS]
    soft = spread[0][0].distribution_
    likeliest = soft.argmax(axis=1)
    alone = np.eye(len(problem.classes), dtype=bool)[likeliest]
    hardened = [fit_machine(lam, x, alone, test, truth) for lam in LAMS]
    return {
        "q": ambiguity,
        "sets_hash": problem.sets_hash,
        "rows": len(x),
        "full_sets_left_out": int((~kept).sum()),
        "likeliest_is_right": float((likeliest == problem.truth[kept]).mean()),
        "likeliest_has_more_than_half": float((soft.max(axis=1) > 0.5).mean()),
        "as_spread": [figures for _, figures in spread],
        "hardened": [figures for _, figures in hardened],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    machine = describe_environment(torch.device("cpu"))  # before the record makes the tree unclean
    del machine["command"]
    try:
        data = load("cifar10", options.root)
    except ConcontError as error:
        parser.exit(error.exit_code, f"{error}\n")
    record = {
        "what": "PARM's machine from spread and from hardened labels of the partial rows alone; "
        "CIFAR-10, GIST, one seed. Accuracy is on the test images.",
        "command": f"python benchmarks/parm_hardened.py --root DATA --seed {options.seed} "
        f"--out {options.out}",
        "digest": data.digest,
        "seed": options.seed,
        "labeled": LABELED,
        "tolerance": PARMClassifier().tolerance,
        "rows": [compare_at(ambiguity, data, options.seed) for ambiguity in AMBIGUITIES],
        "environment": machine,
    }
    options.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
