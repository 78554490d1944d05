"""Candidate sets that miss the truth: what they cost, what trust recovers, and who finds them.

    concont train --data digits --set data.holdout=0.2 data.noise=0.1 method.trust=0.8 --out run
    python benchmarks/noise.py measure run ...      # a line of JSON a run
    python benchmarks/noise.py digits --seeds 111 112 113 114 115 --out noise-digits.json

`digits` trains four runs a seed, with and without noise, believing every set or four of five, and
measures each on images held out of the training.
"""

import argparse
import json
import logging
import tempfile
from pathlib import Path
from typing import Any

from sklearn.metrics import roc_auc_score

import concont

NOISE, TRUST = (0.0, 0.1), (1.0, 0.8)


def measure(run: concont.Run) -> dict[str, Any]:
    """What a run learned of its sets; true labels of training images are read for this alone."""
    found = concont.resolve(run)
    sets, truth = found.candidates[found.partial], found.truth[found.partial]
    rows = range(len(truth))
    missed, outside = ~sets[rows, truth], found.outside[found.partial]
    label, overruled = found.label[found.partial], found.overruled[found.partial]
    settings = run.settings
    return {
        "data": settings.data.source,
        "labeled": settings.data.labeled,
        "noise": settings.data.noise,
        "trust": getattr(settings.method, "trust", None),
        "seed": settings.data.seed,
        "epochs": settings.train.epochs,
        "recipe": settings.recipe,
        "settings_hash": run.summary["settings_hash"],
        "seconds": run.summary["seconds"],
        "accuracy": run.summary["accuracy_last"],
        "sets": len(truth),
        "missing_the_truth": int(missed.sum()),
        "auc": float(roc_auc_score(missed, outside)) if missed.any() else None,
        "overruled": int(overruled.sum()),
        "overruled_and_right": int((overruled & missed & (label == truth)).sum()),
        "resolved": float((label == truth).mean()),
    }


def train_on_digits(
    noise: float, trust: float, seed: int, out: Path, labeled: float = 0.1
) -> concont.Run:
    return concont.train(
        {
            "recipe": "digits",
            "data": {
                "source": "digits",
                "labeled": labeled,
                "holdout": 0.2,
                "noise": noise,
                "seed": seed,
            },
            "method": {"trust": trust},
            "train": {"seed": seed, "device": "cpu", "evaluate_every": 20},
        },
        out=out,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    measurer = verbs.add_parser("measure")
    measurer.add_argument("runs", nargs="+", type=Path)
    trainer = verbs.add_parser("digits")
    trainer.add_argument("--seeds", nargs="+", type=int, required=True)
    trainer.add_argument("--labeled", type=float, default=0.1)
    trainer.add_argument("--out", type=Path, required=True)
    words = parser.parse_args()
    logging.getLogger("concont").setLevel(logging.ERROR)
    if words.verb == "measure":
        for run in words.runs:
            print(json.dumps(measure(concont.load(run))), flush=True)
        return
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for seed in words.seeds:
            for noise in NOISE:
                for trust in TRUST:
                    out = Path(folder) / f"{seed}-{noise}-{trust}"
                    found.append(measure(train_on_digits(noise, trust, seed, out, words.labeled)))
                    print(json.dumps(found[-1]), flush=True)
    words.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
