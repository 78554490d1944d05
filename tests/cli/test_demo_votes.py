import csv

import numpy as np
import pytest
from PIL import Image

from concont.cli.demo_votes import ANNOTATORS, COMMANDS, N_VOTED, make_folder
from concont.data.sources import digits
from processes import concont


def test_the_folder_holds_digits_and_votes_that_err(tmp_path):
    truth, data = make_folder(1, tmp_path), digits()
    photos = sorted((tmp_path / "photos").iterdir())
    assert len(photos) == 1437
    assert np.array_equal(np.asarray(Image.open(photos[7])), data.x_train[7, ..., 0])
    assert [truth[name] for name in sorted(truth)] == [str(label) for label in data.y_test]
    with open(tmp_path / "votes.csv", newline="") as file:
        votes = list(csv.DictReader(file))
    assert len(votes) == len(ANNOTATORS) * N_VOTED
    for annotator, skill in ANNOTATORS.items():
        own = [v for v in votes if v["annotator"] == annotator]
        right = np.mean([int(v["label"]) == data.y_train[int(v["image"][:4])] for v in own])
        assert abs(right - skill) < 0.08
    again = tmp_path / "again"
    make_folder(1, again)
    assert (again / "votes.csv").read_text() == (tmp_path / "votes.csv").read_text()


@pytest.mark.long
@pytest.mark.timeout(600)
def test_the_whole_way_is_walked_and_every_command_printed(tmp_path):
    done = concont("demo", "--votes", "--out", tmp_path / "demo")
    assert done.returncode == 0, done.stderr
    for command in COMMANDS:
        assert f"$ concont {command.replace('SEED', '1')}" in done.stdout
    share = float(done.stdout.split(" % of the 360 new digits are named right")[0].split()[-1])
    assert share > 95
