"""Votes as evidence: simulated annotators, and who names the voted images rightly.

    python benchmarks/votes.py make digits votes.npz --labeled 0.1 --seed 1
    concont train --data votes.npz --recipe digits --set data.holdout=0.2 \
        --set data.labeled=null --set data.ambiguity=null --out run
    python benchmarks/votes.py measure votes.npz run
    python benchmarks/votes.py digits --seeds 111 112 113 114 115 --out votes-digits.json

Three of five annotators vote on each of the labelled images. Four are right in 80 %, take a class
for a similar one in 15 % and for any in 5 %; the fifth is right in 40 % and else says anything.
`measure` compares the resolved labels of the voted images with the votes' majority and with Dawid
and Skene's estimate (1979), which knows who voted what; and the accuracy on the images held out.
`digits` does all of it, with votes that weigh and without, a seed after another. The true labels
stand in `y_train`, which a run uses for measuring alone.
"""

import argparse
import json
import logging
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

import concont
from concont.data.problem import Problem
from concont.data.sources import load

N_ANNOTATORS, N_VOTES, BAD = 5, 3, 4
RIGHT, ALIKE_SHARE, RIGHT_IF_BAD = 0.8, 0.15, 0.4
# The two classes that each is most easily taken for.
ALIKE = {
    "cifar10": ((8, 2), (9, 9), (0, 4), (5, 5), (7, 2), (3, 3), (2, 3), (4, 5), (0, 1), (1, 1)),
    "digits": ((6, 8), (7, 4), (3, 7), (8, 5), (9, 1), (3, 6), (0, 8), (1, 9), (3, 9), (4, 7)),
}
STRENGTHS = (1.0, 0.0)
AS_GIVEN = {"labeled": None, "ambiguity": None}  # the sets of the file, none made
Ballots = NDArray[np.int64]


def simulate(
    truth: NDArray[np.int64], alike: tuple[tuple[int, int], ...], stream: np.random.RandomState
) -> Ballots:
    """What each annotator says of each image (N, annotators), -1 where nobody asked."""
    classes = len(alike)
    ballots = np.full((len(truth), N_ANNOTATORS), -1)
    for row, label in enumerate(truth):
        for who in stream.permutation(N_ANNOTATORS)[:N_VOTES]:
            chance = stream.rand()
            if chance < (RIGHT_IF_BAD if who == BAD else RIGHT):
                said = label
            elif who != BAD and chance < RIGHT + ALIKE_SHARE:
                said = alike[label][stream.randint(2)]
            else:
                said = stream.randint(classes)
            ballots[row, who] = said
    return ballots


def count(ballots: Ballots, classes: int) -> NDArray[np.int64]:
    """Votes for each class (N, classes)."""
    return np.stack([(ballots == k).sum(axis=1) for k in range(classes)], axis=1)


def dawid_skene(ballots: Ballots, classes: int, rounds: int = 100) -> NDArray[np.float64]:
    """How likely each class is (N, classes), with a confusion matrix an annotator, by EM."""
    said = np.stack([ballots == k for k in range(classes)], axis=2).astype(float)  # (N, A, C)
    posterior = said.sum(axis=1) + 1e-9
    posterior /= posterior.sum(axis=1, keepdims=True)
    for _ in range(rounds):
        prior = posterior.mean(axis=0)
        confusion = np.einsum("nc,nak->ack", posterior, said) + 0.01  # (A, C true, C said)
        confusion /= confusion.sum(axis=2, keepdims=True)
        log_posterior = np.log(prior + 1e-12) + np.einsum("nak,ack->nc", said, np.log(confusion))
        log_posterior -= log_posterior.max(axis=1, keepdims=True)
        posterior = np.exp(log_posterior)
        posterior /= posterior.sum(axis=1, keepdims=True)
    return posterior


def make(source: str, out: Path, labeled: float, seed: int, root: str | None) -> None:
    """An `.npz` with votes on some of the training images, who gave them, and every true label."""
    data, stream = load(source, root), np.random.RandomState(seed)
    n, classes = len(data.x_train), len(data.classes)
    rows = np.sort(stream.permutation(n)[: round(labeled * n)])
    ballots = np.full((n, N_ANNOTATORS), -1)
    ballots[rows] = simulate(data.y_train[rows], ALIKE[source], stream)
    votes = count(ballots, classes)
    sets = votes > 0
    sets[votes.sum(axis=1) == 0] = True
    np.savez(
        *(out,),
        x_train=data.x_train,
        y_train=data.y_train,
        candidates=sets,
        candidate_weights=votes.astype(np.float32),
        classes=np.array(data.classes),
    )
    np.save(out.with_suffix(".ballots.npy"), ballots)


def measure(ballots: Ballots, run: concont.Run) -> dict[str, Any]:
    """Accuracy of labels of the voted images that were trained on, and of the images held out."""
    problem: Problem = run.read_problem()
    found = concont.resolve(run, problem)
    said = ballots[problem.rows]
    voted = (said >= 0).any(axis=1)
    truth, classes = problem.truth[voted], len(problem.classes)
    votes = count(said[voted], classes)
    top = votes.max(axis=1, keepdims=True)
    tied = (votes == top).sum(axis=1)
    majority = ((votes == top)[np.arange(len(truth)), truth] / tied).mean()  # ties by lot
    skene = dawid_skene(said[voted], classes).argmax(axis=1)
    label, contested = found.label[voted], (votes > 0).sum(axis=1) > 1
    missed = votes[np.arange(len(truth)), truth] == 0
    settings = run.settings
    return {
        "vote_strength": getattr(settings.method, "vote_strength", None),
        "seed": settings.data.seed,
        "epochs": settings.train.epochs,
        "recipe": settings.recipe,
        "settings_hash": run.summary["settings_hash"],
        "seconds": run.summary["seconds"],
        "voted": int(voted.sum()),
        "majority": float(majority),
        "dawid_skene": float((skene == truth).mean()),
        "resolved": float((label == truth).mean()),
        "contested": {
            "share": float(contested.mean()),
            "dawid_skene": float((skene == truth)[contested].mean()),
            "resolved": float((label == truth)[contested].mean()),
        },
        "sets_that_miss_the_truth": float(missed.mean()),
        "auc_of_outside_mass": (
            float(roc_auc_score(missed, found.outside[voted])) if missed.any() else None
        ),
        "held_out": run.summary["accuracy_last"],
    }


def train_on_digits(seed: int, folder: Path) -> Iterator[dict[str, Any]]:
    """Runs on votes for a tenth of the digits, with votes that count and without."""
    file = folder / f"{seed}.npz"
    make("digits", file, 0.1, seed, None)
    for strength in STRENGTHS:
        config = {
            "recipe": "digits",
            "data": {"source": str(file), "holdout": 0.2, "seed": seed} | AS_GIVEN,
            "method": {"vote_strength": strength},
            "train": {"seed": seed, "device": "cpu", "evaluate_every": 20},
        }
        run = concont.train(config, out=folder / f"{seed}-{strength:g}")
        yield {"data": "digits", **measure(read_ballots(file), run)}


def read_ballots(file: Path) -> Ballots:
    ballots: Ballots = np.load(file.with_suffix(".ballots.npy"))
    return ballots


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    maker = verbs.add_parser("make")
    maker.add_argument("source", choices=ALIKE)
    maker.add_argument("file", type=Path)
    maker.add_argument("--labeled", type=float, required=True)
    maker.add_argument("--seed", type=int, required=True)
    maker.add_argument("--root")
    measurer = verbs.add_parser("measure")
    measurer.add_argument("file", type=Path)
    measurer.add_argument("run", type=Path)
    trainer = verbs.add_parser("digits")
    trainer.add_argument("--seeds", nargs="+", type=int, required=True)
    trainer.add_argument("--out", type=Path, required=True)
    words = parser.parse_args()
    logging.getLogger("concont").setLevel(logging.ERROR)
    if words.verb == "make":
        make(words.source, words.file, words.labeled, words.seed, words.root)
    elif words.verb == "measure":
        print(json.dumps(measure(read_ballots(words.file), concont.load(words.run))), flush=True)
    else:
        found = []
        with tempfile.TemporaryDirectory() as folder:
            for seed in words.seeds:
                for result in train_on_digits(seed, Path(folder)):
                    found.append(result)
                    print(json.dumps(result), flush=True)
        words.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
