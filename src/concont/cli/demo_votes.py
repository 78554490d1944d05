"""The demonstration from a folder and votes: digits as image files, and annotators who err."""

import csv
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
from PIL import Image
from rich.console import Console

from concont.data.sources import digits
from concont.display import percent
from concont.errors import ConcontError

N_VOTED = 400  # of 1,437 images
ANNOTATORS = {"ann": 0.9, "bob": 0.8, "cid": 0.55}  # how often each sees a digit right
# What a digit is taken for by one who errs, most of the time.
ALIKE = {0: 6, 1: 7, 2: 3, 3: 8, 4: 9, 5: 6, 6: 5, 7: 1, 8: 3, 9: 4}


def walk(seed: int, out: Path, console: Console) -> float:
    """Make the folder, run each command as a user would; the share of new images it gets right."""
    truth = make_folder(seed, out)
    introduce(out, console)
    for command in (each.replace("SEED", str(seed)) for each in COMMANDS):
        _say(console, f"\n$ concont {command}")
        _run(command, out)
    with open(out / "predictions.csv", newline="") as file:
        labels = {Path(row["image"]).name: row["label"] for row in csv.DictReader(file)}
    right = float(np.mean([labels[name] == label for name, label in truth.items()]))
    _say(
        console,
        f"\n{percent(right)} of the {len(truth)} new digits are named right; of the votes "
        f"{percent(_share_right(out))} were. All of it lies in {out}.",
    )
    return right


def introduce(out: Path, console: Console) -> None:
    """Say what is in the folder."""
    _say(
        console,
        f"{out}: photos/ has {N_VOTED} digits that three annotators voted on (votes.csv) and more "
        "that nobody did; new/ has digits to try the classifier on.",
    )


COMMANDS = (
    "data from-votes votes.csv --images photos -o table.csv",
    "data check table.csv --images photos",
    # A mirrored digit is another one, or none.
    "train --data table.csv --images photos --seed SEED --set views.flip=false --out run",
    "resolve run --out labels.csv",
    "report run --out report.html",
    "predict run new --out predictions.csv",
)


def make_folder(seed: int, out: Path) -> dict[str, str]:
    """Write images and votes; returns the true class of each new image by its file name."""
    data, random = digits(), np.random.RandomState(seed)
    assert data.x_test is not None
    assert data.y_test is not None
    for folder, images in (("photos", data.x_train), ("new", data.x_test)):
        (out / folder).mkdir(parents=True)
        for number, image in enumerate(images):
            Image.fromarray(image[..., 0]).save(out / folder / _name(number))
    with open(out / "votes.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["image", "annotator", "label"])
        for number, digit in enumerate(data.y_train[:N_VOTED].tolist()):
            for annotator, skill in ANNOTATORS.items():
                wrong = ALIKE[digit] if random.rand() < 0.7 else random.randint(10)
                vote = digit if random.rand() < skill else wrong
                writer.writerow([_name(number), annotator, vote])
    return {_name(number): str(label) for number, label in enumerate(data.y_test)}


def _say(console: Console, text: str) -> None:
    console.print(text, soft_wrap=True, highlight=False, markup=False)


def _share_right(out: Path) -> float:
    truth = digits().y_train
    with open(out / "votes.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    return float(np.mean([int(r["label"]) == truth[int(Path(r["image"]).stem)] for r in rows]))


def _name(number: int) -> str:
    return f"{number:04d}.png"


def _run(command: str, folder: Path) -> None:
    words = [sys.executable, "-m", "concont", *shlex.split(command)]
    ended = subprocess.run(words, cwd=folder, check=False)
    if ended.returncode:
        raise ConcontError(f"`concont {command}` ended with exit code {ended.returncode}")
