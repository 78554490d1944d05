"""Figures are drawn from what was run, with their numbers beside them."""

import csv
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from concont.errors import UsageError
from concont.paper.figures import FIGURES, draw
from concont.paper.plan import cells_of


def numbers(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_nothing_is_drawn_of_nothing(tmp_path):
    for name in FIGURES:
        assert draw(name, [], tmp_path / "figures") == []
    assert not (tmp_path / "figures").exists()


def test_accuracy_against_share(tmp_path, made_up):
    cells = [cell for cell in cells_of("figure1") if cell.method != "PiCO"]
    records = [
        made_up(c, seed, accuracy=c.labeled / 2 + seed / 10) for c in cells for seed in (1, 2)
    ]
    paths = draw("figure1", records, tmp_path)
    assert [path.name for path in paths] == ["figure1.csv", "figure1.svg", "figure1.png"]
    rows = numbers(paths[0])
    assert len(rows) == 8
    (row,) = (r for r in rows if (r["method"], r["labeled"]) == ("ConCont", "0.5"))
    assert float(row["ours_mean"]) == pytest.approx(40)
    assert (row["seeds"], row["epochs"]) == ("1 2", "60")
    ET.parse(paths[1])
    words = paths[1].read_text()  # Matplotlib leaves them as comments beside their outlines
    for word in ("ConCont", "DPLL", "test accuracy", "60 epochs"):
        assert word in words
    assert "PiCO" not in words
    with Image.open(paths[2]) as picture:
        assert min(picture.size) >= 800
        assert len(np.unique(np.asarray(picture))) > 20


def test_lines_are_of_one_length(tmp_path, made_up):
    """The one that most points have, and of two such the longer."""
    cells = {(c.method, c.labeled): c for c in cells_of("figure1")}
    records = [made_up(cell, epochs=60) for (method, _), cell in cells.items() if method != "PiCO"]
    records += [made_up(cells["ConCont", share], epochs=800) for share in (0.1, 1.0)]
    rows = numbers(draw("figure1", records, tmp_path)[0])
    assert {row["epochs"] for row in rows} == {"60"}
    assert len(rows) == 8
    more = [made_up(cell, epochs=800) for cell in list(cells.values())[:8]]
    rows = numbers(draw("figure1", [*records, *more], tmp_path, overwrite=True)[0])
    assert ({row["epochs"] for row in rows}, len(rows)) == ({"800"}, 8)


def test_thresholds_over_time(tmp_path, made_up):
    found = {c.method: c for c in cells_of("table5") if c.data == "cifar10"}
    moved = [[1, [0.8, 0.8]], [60, [0.9, 0.6]]]
    kept = [[1, [0.8, 0.8]], [60, [0.8, 0.8]]]
    records = [
        made_up(found["Adaptive"], thresholds=moved),
        made_up(found["Vanilla"], thresholds=kept),
        made_up(found["DA"], thresholds=moved),
        made_up(replace(found["Adaptive"], q=0.3), thresholds=[[1, [0.1, 0.1]]]),
        made_up(found["Adaptive"], seed=2, thresholds=[[1, [0.2, 0.2]]]),
    ]
    paths = draw("thresholds", records, tmp_path)
    rows = numbers(paths[0])
    assert len(rows) == 8
    words = paths[1].read_text()
    for word in ("fixed", "class 0", "class 1"):
        assert f"<!-- {word} -->" in words
    last = [r for r in rows if r["method"] == "Adaptive" and r["epoch"] == "60"]
    assert [(r["class"], r["threshold"]) for r in last] == [("0", "0.9"), ("1", "0.6")]


def test_classes_whose_thresholds_are_the_same_share_a_line(tmp_path, made_up):
    found = {c.method: c for c in cells_of("table5") if c.data == "cifar10"}
    same = [[1, [0.8, 0.8, 0.7]], [60, [0.9, 0.9, 0.6]]]
    words = draw("thresholds", [made_up(found["Adaptive"], thresholds=same)], tmp_path)[
        1
    ].read_text()
    assert "<!-- classes 0, 1 -->" in words
    assert "<!-- class 2 -->" in words
    assert "fixed" not in words


def test_of_several_seeds_one_that_all_have_is_shown(tmp_path, made_up):
    found = {c.method: c for c in cells_of("table5") if c.data == "cifar10"}
    records = [made_up(found["Adaptive"], seed, verdict=verdict([5], [5])) for seed in (1, 2, 3)]
    records += [made_up(found["Vanilla"], seed, verdict=verdict([5], [5])) for seed in (2, 3)]
    rows = numbers(draw("pseudo-labels", records, tmp_path)[0])
    assert {row["seed"] for row in rows} == {"2"}


def verdict(confident, right, precision=(0.9, 0.8)):
    scores = {"p_score": list(precision), "max_probability": [1.0, 0.5]}
    counts = {"pseudo_labels": [9] * len(right), "confident": confident, "confident_right": right}
    return {**counts, "precision": scores}


def test_precision_against_recall(tmp_path, made_up):
    low, high = sorted(cells_of("figure-pr"), key=lambda cell: cell.q)
    records = [
        made_up(low),  # finished before verdicts were kept
        made_up(low, seed=2, verdict=verdict([5, 5], [4, 4])),
        made_up(high, verdict=verdict([5, 5], [4, 4], precision=(0.7, 0.6))),
        made_up(replace(low, labeled=0.2), verdict=verdict([5, 5], [4, 4], precision=(0, 0))),
    ]
    paths = draw("figure-pr", records, tmp_path)
    rows = numbers(paths[0])
    assert {(r["q"], r["seed"]) for r in rows} == {("0.05", "2"), ("0.1", "1")}
    points = [(r["score"], r["recall"], r["precision"]) for r in rows if r["q"] == "0.1"]
    assert points == [
        ("p_score", "0.5", "0.7"),
        ("p_score", "1.0", "0.6"),
        ("max_probability", "0.5", "1.0"),
        ("max_probability", "1.0", "0.5"),
    ]
    words = paths[1].read_text()
    for word in ("p-score, q = 0.05", "highest probability in the set, q = 0.1", "40 %, 60 epochs"):
        assert word in words


def test_pseudo_labels_by_class(tmp_path, made_up):
    found = {c.method: c for c in cells_of("table5") if c.data == "cifar10"}
    records = [
        made_up(found["Adaptive"], verdict=verdict([5, 4], [4, 4])),
        made_up(found["Vanilla"], verdict=verdict([8, 1], [6, 1])),
        made_up(found["DA"], verdict=verdict([9, 9], [9, 9])),
    ]
    paths = draw("pseudo-labels", records, tmp_path)
    rows = numbers(paths[0])
    got = [(r["method"], r["class"], r["confident"], r["confident_right"]) for r in rows]
    assert got == [
        ("Adaptive", "0", "5", "4"),
        ("Adaptive", "1", "4", "4"),
        ("Vanilla", "0", "8", "6"),
        ("Vanilla", "1", "1", "1"),
    ]
    words = paths[1].read_text()
    for word in ("adaptive thresholds", "fixed thresholds", "wrong", "60 epochs"):
        assert word in words


def test_without_matplotlib_it_says_what_is_missing(tmp_path, made_up, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(UsageError, match=r"pip install 'concont\[figures\]'"):
        draw("figure1", [made_up(cells_of("figure1")[0])], tmp_path)
