import numpy as np
import pytest

from concont.report import embedding
from concont.report.embedding import choose_sample, draw_map, project
from made_runs import HOSTILE, make_resolution


def test_the_sample_holds_all_of_the_review_list():
    listed = np.array([9_999, 3, 77])
    rows = choose_sample(10_000, listed)
    assert len(rows) == len(np.unique(rows)) == embedding.MOST
    assert set(listed) <= set(rows)
    assert (np.diff(rows) > 0).all()
    assert choose_sample(50, listed[1:]).tolist() == [*range(50), 77]


def test_the_first_directions_are_those_of_the_largest_spread():
    random = np.random.RandomState(0)
    spread = random.randn(400, 6) * np.array([0.1, 5.0, 0.1, 0.1, 2.0, 0.1])
    places, held = project(spread.astype(np.float32))
    assert abs(np.corrcoef(places[:, 0], spread[:, 1])[0, 1]) > 0.99
    assert abs(np.corrcoef(places[:, 1], spread[:, 4])[0, 1]) > 0.99
    total = spread.var(axis=0).sum()
    assert held == pytest.approx(places.var(axis=0).sum() / total, abs=1e-3)
    same, _ = project(np.ones((5, 4), np.float32))
    assert not same.any()


def test_the_map_has_a_trace_a_label_and_rings(monkeypatch):
    resolution = make_resolution(n=60)
    chart = draw_map(resolution, np.array([0, 10, 20]))
    *classes, rings = chart.data
    assert [trace["name"] for trace in classes] == ["cat", "dog", "bird"]
    assert sum(len(trace["x"]) for trace in classes) == 60
    assert len(rings["x"]) == 3
    assert classes[0]["text"][0] == "0000.png<br>cat, 40\u00a0%<br>1 in the review list"
    assert "All 60 images" in chart.sentence
    monkeypatch.setattr(embedding, "MOST", 30)
    assert "A sample of 30 of 60 images" in draw_map(resolution, np.array([0])).sentence


def test_names_on_the_map_hold_no_markup():
    resolution = make_resolution(n=6, classes=HOSTILE[:3], names=HOSTILE)
    texts = [
        text for trace in draw_map(resolution, np.array([0])).data[:-1] for text in trace["text"]
    ]
    assert not any("<" in text.replace("<br>", "") for text in texts)


def test_too_little_for_a_map_is_none():
    assert draw_map(make_resolution(n=2), np.array([0])) is None
    assert draw_map(make_resolution(n=9, dim=1, classes=("a",)), np.array([0])) is None
