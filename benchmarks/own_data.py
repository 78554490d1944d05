"""The trial of own images: 3,000 of CIFAR-10 as files, three simulated votes on 1,000 of them.

    python benchmarks/own_data.py trial --root DATA
    cd trial && concont train --data table.csv --images photos --out run

`table.csv` has the 10,000 test images as rows of the split `test`; `--tune` puts 5,000 other
training images in their place, on which settings were chosen. DATA holds CIFAR-10.
"""

import argparse
import csv
import sys
from pathlib import Path

import numpy as np
from PIL import Image

from concont.data.named import default_root
from concont.data.sources import load
from concont.errors import ConcontError

N_IMAGES, N_VOTED, N_TUNE = 3000, 1000, 5000
ANNOTATORS = ("ann", "bob", "cid")
# What a class is taken for: airplane, automobile, bird, cat, deer, dog, frog, horse, ship, truck.
ALIKE = ((8, 2), (9, 9), (0, 4), (5, 5), (7, 2), (3, 3), (2, 3), (4, 5), (0, 1), (1, 1))


def simulate_votes(labels: np.ndarray, stream: np.random.RandomState) -> np.ndarray:
    """Votes (N, 10): each right in 80 %, else a similar class in 15 % and any in 5 %."""
    votes = np.zeros((len(labels), 10), dtype=int)
    for row, label in enumerate(labels):
        for _ in ANNOTATORS:
            chance = stream.rand()
            if chance < 0.8:
                vote = label
            else:
                vote = ALIKE[label][stream.randint(2)] if chance < 0.95 else stream.randint(10)
            votes[row, vote] += 1
    return votes


def make_trial(folder: Path, root: str | None, tune: bool) -> dict[str, float]:
    """Write images, votes and table; returns what the votes are like."""
    data, stream = load("cifar10", root or str(default_root())), np.random.RandomState(7)
    chosen = stream.permutation(len(data.x_train))[:N_IMAGES]
    images, labels = data.x_train[chosen], data.y_train[chosen]
    votes = simulate_votes(labels[:N_VOTED], stream)
    held, truth, names = data.x_test, data.y_test, np.array(data.classes)
    if tune:
        others = np.setdiff1d(np.arange(len(data.x_train)), chosen)[:N_TUNE]
        held, truth = data.x_train[others], data.y_train[others]
    (folder / "photos" / "test").mkdir(parents=True)
    for place, pictures in (("photos", images), ("photos/test", held)):
        for number, picture in enumerate(pictures):
            Image.fromarray(picture).save(folder / place / f"{number:05d}.png")
    rows = []
    for number in range(N_IMAGES):
        found = np.flatnonzero(votes[number]) if number < N_VOTED else []
        counts = "|".join(str(votes[number, k]) for k in found)
        rows.append([f"{number:05d}.png", "|".join(names[found]), counts, "", ""])
    rows += [[f"test/{n:05d}.png", "", "", names[k], "test"] for n, k in enumerate(truth)]
    with open(folder / "table.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["image", "candidates", "votes", "label", "split"], *rows])
    sets = votes > 0
    return {
        "candidates": sets.sum(axis=1).mean(),
        "sets that miss the truth": 1 - sets[np.arange(N_VOTED), labels[:N_VOTED]].mean(),
        "majority right": (votes.argmax(axis=1) == labels[:N_VOTED]).mean(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--root")
    parser.add_argument("--tune", action="store_true")
    words = parser.parse_args()
    try:
        figures = make_trial(words.folder, words.root, words.tune)
    except (ConcontError, OSError) as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    print(", ".join(f"{name} {figure:.3f}" for name, figure in figures.items()))


if __name__ == "__main__":
    main()
