"""docs/ten-minutes.md: every command of the page, in order, in real processes."""

import csv
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from concont.cli.demo_votes import make_folder
from concont.data.sources import digits
from processes import fresh

ROOT = Path(__file__).parent.parent


def commands():
    text = (ROOT / "docs" / "ten-minutes.md").read_text("utf-8")
    blocks = re.findall(r"^```sh\n(.*?)^```$", text, re.DOTALL | re.M)
    return [line for block in blocks for line in block.splitlines()]


def read(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def fill_in(sheet):
    """Answer the first twenty of the sheet, as a person would who sees what the images show."""
    rows, truth = read(sheet), digits().y_train
    for row in rows[:20]:
        row["annotator"], row["label"] = "me", str(truth[int(Path(row["image"]).stem)])
    with open(sheet, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


@pytest.fixture(scope="module")
def walked(tmp_path_factory):
    """The folder after all commands, and what each printed."""
    place, said = tmp_path_factory.mktemp("ten"), {}
    for line in commands():
        if line.startswith("cd "):
            place = place / line.removeprefix("cd ")
            continue
        program, *words = shlex.split(line)
        assert program == "concont"
        done = fresh(*words, cwd=place)
        assert done.returncode == 0, (line, done.stderr)
        said[line] = done.stdout
        if "--budget" in words:
            fill_in(place / "next.csv")
    return place, said


@pytest.mark.long
@pytest.mark.timeout(900)
def test_every_command_of_the_page_does_what_it_says(walked):
    place, said = walked
    labels, truth = read(place / "labels.csv"), digits().y_train
    assert len(labels) == 1437
    right = [row["label"] == str(truth[int(row["image"][:4])]) for row in labels]
    assert np.mean(right) > 0.9
    assert len(read(place / "next.csv")) == 30
    assert "<html" in (place / "report.html").read_text("utf-8")
    table = {row["image"]: row["candidates"] for row in read(place / "table2.csv")}
    for row in read(place / "next.csv")[:20]:
        assert table[row["image"]] == row["label"]
    new = {f"{k:04d}.png": str(label) for k, label in enumerate(digits().y_test)}
    for name in ("predictions.csv", "the-same.csv"):
        rows = read(place / name)
        assert np.mean([new[Path(row["image"]).name] == row["label"] for row in rows]) > 0.9
    both = [[row["label"] for row in read(place / n)] for n in ("predictions.csv", "the-same.csv")]
    assert np.mean(np.array(both[0]) == np.array(both[1])) > 0.99
    assert len(said) == len(commands()) - 1


def test_the_votes_on_the_page_are_those_of_the_example(tmp_path):
    make_folder(1, tmp_path)
    page = (ROOT / "docs" / "ten-minutes.md").read_text("utf-8")
    head = "\n".join((tmp_path / "votes.csv").read_text().splitlines()[:5])
    assert head in page
