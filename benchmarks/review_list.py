"""How many wrong labels the head of the review list holds, with simulated votes.

    python benchmarks/review_list.py make cifar10 trial --images 8000 --voted 8000 --seed 11
    cd trial && concont train --data table.csv --images photos --set data.holdout=0.1 --out run
    python benchmarks/review_list.py measure run

The true labels stand in the table's column `label`, which a run uses for measuring alone, but for
the tenth that is held out, on which `concont resolve` fits its temperature.
"""

import argparse
import csv
import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from own_data import simulate_votes
from PIL import Image
from sklearn.metrics import roc_auc_score

import concont
from concont.answers.resolution import Resolution
from concont.data.sources import load

HEAD = 0.1  # of the list


def make(source: str, folder: Path, images: int, voted: int, seed: int, root: str | None) -> None:
    """Image files, and a table with the candidates of the first `voted` and every true label."""
    data, stream = load(source, root), np.random.RandomState(seed)
    chosen = stream.permutation(len(data.x_train))[:images]
    truth, names = data.y_train[chosen], np.array(data.classes)
    votes = simulate_votes(truth[:voted], stream)
    (folder / "photos").mkdir(parents=True)
    rows = []
    for row, picture in enumerate(data.x_train[chosen]):
        Image.fromarray(picture.squeeze()).save(folder / "photos" / f"{row:05d}.png")
        found = np.flatnonzero(votes[row]) if row < voted else []
        counts = "|".join(str(votes[row, k]) for k in found)
        rows.append([f"{row:05d}.png", "|".join(names[found]), counts, names[truth[row]]])
    with open(folder / "table.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["image", "candidates", "votes", "label"], *rows])


def measure(found: Resolution) -> dict[str, object]:
    """Shares of wrong labels, in all and at the head of the list; each part of the doubt alone."""
    wrong, rows = found.label != found.truth, np.arange(len(found))
    missed = ~found.candidates[rows, found.truth]
    parts = {
        "review list": -found.review.astype(float),
        "p-score": -found.score,
        "probability inside the set": -found.probability,
        "mass outside the set": found.outside,
        "neighbours": found.disagreement,
    }
    calibration = found.calibration
    return {
        "images": len(found),
        "with a set": int(found.partial.sum()),
        "accuracy": found.accuracy(),
        "accuracy of those with a set": found.accuracy(found.partial),
        "accuracy of those without": found.accuracy(~found.partial),
        "sets that miss the truth": float(missed.mean()),
        "overruled": int(found.overruled.sum()),
        "overruled rightly": int((found.overruled & missed & ~wrong).sum()),
        "calibration": None if calibration is None else vars(calibration),
        "wrong": float(wrong.mean()),
        "wrong_at_the_head": {name: wrong_at_the_head(wrong, by) for name, by in parts.items()},
        "area_under_curve": {name: float(roc_auc_score(wrong, by)) for name, by in parts.items()},
    }


def wrong_at_the_head(wrong: NDArray[np.bool_], doubt: NDArray[np.floating]) -> float:
    head = np.argsort(-doubt, kind="stable")[: round(HEAD * len(wrong))]
    return float(wrong[head].mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    maker = verbs.add_parser("make")
    maker.add_argument("source")
    maker.add_argument("folder", type=Path)
    for name in ("images", "voted", "seed"):
        maker.add_argument(f"--{name}", type=int, required=True)
    maker.add_argument("--root")
    verbs.add_parser("measure").add_argument("run", type=Path)
    words = parser.parse_args()
    if words.verb == "make":
        make(words.source, words.folder, words.images, words.voted, words.seed, words.root)
    else:
        found = concont.resolve(concont.load(words.run))
        print(json.dumps(measure(found), indent=1))


if __name__ == "__main__":
    main()
