import numpy as np
import pytest

from concont.report.class_charts import (
    BINS,
    DRAWN,
    draw_class_counts,
    draw_confusion,
    draw_reliability,
    fill_bins,
)
from concont.report.record import read_record
from concont.training.quality import calibration_error
from made_runs import CLASSES, make_run


def test_pseudo_labels_are_stacked_by_how_sure_and_right_they_are(tmp_path):
    record = read_record(make_run(tmp_path / "run"))
    chart = draw_class_counts(record)
    bars = {trace["name"]: trace["y"] for trace in chart.data}
    assert bars == {
        "confident and right": [76] * 3,
        "confident and wrong": [4] * 3,
        "not confident": [20] * 3,
    }
    assert chart.sentence == "240 of 300 pseudo-labels are confident, 95.00\u00a0% of them right."
    assert chart.rows[0] == ["cat", "76", "4", "20"]


def test_without_true_labels_nothing_is_said_of_right_ones(tmp_path):
    record = read_record(make_run(tmp_path / "run"))
    record.verdict["confident_right"] = None
    chart = draw_class_counts(record)
    assert [trace["name"] for trace in chart.data] == ["confident", "not confident"]
    assert chart.sentence == "240 of 300 pseudo-labels are confident."
    record.verdict.clear()
    assert draw_class_counts(record) is None


def test_confusions_are_shares_of_the_true_class():
    chart = draw_confusion([[8, 2, 0], [0, 10, 0], [5, 0, 5]], CLASSES, "30 test images")
    (heat,) = chart.data
    assert heat["z"] == [[80, 20, 0], [0, 100, 0], [50, 0, 50]]
    assert heat["customdata"] == [[8, 2, 0], [0, 10, 0], [5, 0, 5]]
    assert heat["text"][2][0] == "bird taken for cat"
    assert chart.rows == [["bird", "cat", "5", "50.00\u00a0%"], ["cat", "dog", "2", "20.00\u00a0%"]]
    assert chart.sentence == "Of 30 test images. Most often bird is taken for cat: 5 images."
    perfect = draw_confusion(np.eye(3, dtype=int).tolist(), CLASSES, "3 images")
    assert perfect.rows == []
    assert "No image is taken for another class." in perfect.sentence


def test_of_very_many_classes_the_confused_ones_are_drawn():
    n = DRAWN + 50
    counts = 5 * np.eye(n, dtype=int)
    counts[n - 1, n - 2] = 3
    chart = draw_confusion(counts.tolist(), [f"c{k}" for k in range(n)], "images")
    assert np.shape(chart.data[0]["z"]) == (DRAWN, DRAWN)
    assert chart.data[0]["z"][-1][-2] == 37.5
    assert f"The {DRAWN} classes with most confusions." in chart.sentence
    assert len(chart.layout["xaxis"]["tickvals"]) <= 40


def test_bins_hold_what_the_calibration_error_is_made_of():
    random = np.random.RandomState(0)
    probs = random.dirichlet(np.ones(4), 500).astype(np.float32)
    labels = random.randint(0, 4, 500)
    bins = fill_bins(probs, labels)
    assert sum(each.n for each in bins) == 500
    assert len(bins) <= BINS
    error = sum(each.n * abs(each.probability - each.accuracy) for each in bins) / 500
    own = calibration_error(probs.max(axis=1), probs.argmax(axis=1) == labels)
    assert error == pytest.approx(own, abs=1e-6)


def test_the_reliability_diagram_has_the_diagonal_and_a_line_a_group():
    probs, labels = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]], np.float32), np.array([0, 1, 1])
    groups = {"as trained": fill_bins(probs, labels), "calibrated": fill_bins(probs, labels)}
    chart = draw_reliability(groups, "A sentence.")
    assert [trace["name"] for trace in chart.data] == ["as it should be", *groups]
    assert chart.data[1]["customdata"] == [1, 1, 1]
    assert len(chart.rows) == 6
