import pytest

from concont.report.curves import (
    LINES,
    SPREAD,
    draw_accuracy,
    draw_confident,
    draw_losses,
    draw_precision,
    draw_thresholds,
)
from concont.report.record import read_record
from made_runs import make_rows, make_run


@pytest.fixture
def record(tmp_path):
    return read_record(make_run(tmp_path / "one"))


@pytest.fixture
def other(tmp_path):
    return read_record(make_run(tmp_path / "two", epochs=6))


def names(chart):
    return [trace["name"] for trace in chart.data]


def test_one_run_shows_the_network_and_its_average(record):
    chart = draw_accuracy([record])
    assert names(chart) == ["network", "its running average"]
    assert chart.data[0]["x"] == [1, 2, 3, 4]
    assert chart.data[0]["y"] == pytest.approx([50, 75, 83.3333, 87.5])
    assert chart.sentence == "At the end: network 87.50\u00a0%; its running average 75.00\u00a0%."
    assert chart.rows[-1] == ["4", "87.50\u00a0%", "75.00\u00a0%"]


def test_several_runs_are_laid_over_each_other(record, other):
    chart = draw_accuracy([record, other])
    assert names(chart) == ["one", "two"]
    assert [len(trace["x"]) for trace in chart.data] == [4, 6]
    assert chart.rows[-1][:2] == ["6", ""]
    assert names(draw_losses([record, other])) == ["one", "two"]
    assert names(draw_confident([record, other])) == ["one", "two"]


def test_losses_are_named_in_words_and_small_ones_can_be_seen(tmp_path):
    rows = make_rows(3, loss_purity=0.001)
    chart = draw_losses([read_record(make_run(tmp_path / "run", rows=rows))])
    words = ["total", "candidate labels", "consistency of labels", "contrast of features"]
    assert names(chart) == [*words, "loss_purity"]
    assert chart.layout["yaxis"]["type"] == "log"
    assert "total 4.00 to 1.33" in chart.sentence


def test_a_loss_of_zero_is_drawn_on_an_even_scale(tmp_path):
    rows = make_rows(3, loss_part=0.0)
    chart = draw_losses([read_record(make_run(tmp_path / "run", rows=rows))])
    assert chart.layout["yaxis"]["type"] == "linear"


def test_what_was_not_measured_is_no_chart(tmp_path):
    nothing = dict.fromkeys(("accuracy", "accuracy_momentum", "confident", "thresholds", "loss"))
    nothing |= dict.fromkeys(("pseudo_accuracy", "confident_precision"))
    rows = make_rows(2, **nothing, **dict.fromkeys(("loss_part", "loss_reg", "loss_contrast")))
    record = read_record(make_run(tmp_path / "run", rows=rows, finished=False))
    assert [draw([record]) for draw in (draw_accuracy, draw_losses, draw_confident)] == [None] * 3
    assert draw_precision([record]) is None
    assert draw_thresholds(record) is None


def test_a_few_classes_have_a_threshold_each(record):
    chart = draw_thresholds(record)
    assert names(chart) == list(record.classes)
    assert "the lowest is 0.557 (cat) and the highest 0.586 (bird)" in chart.sentence


def test_of_many_classes_the_spread_is_shown(tmp_path):
    n = LINES + 1
    record = read_record(make_run(tmp_path / "run", classes=tuple(map(str, range(n)))))
    chart = draw_thresholds(record)
    assert names(chart) == list(SPREAD)
    last = record.last["thresholds"]
    ends = [trace["y"][-1] for trace in chart.data]
    assert (ends[0], ends[2], ends[4]) == (min(last), sorted(last)[n // 2], max(last))


def test_precision_against_recall_of_both_scores(record, other):
    chart = draw_precision([record])
    assert names(chart) == ["p-score", "highest probability"]
    assert (chart.data[0]["x"][0], chart.data[0]["x"][-1]) == (1, 100)
    assert chart.data[0]["y"][0] == 100
    assert "p-score 90.10\u00a0%; highest probability 80.10\u00a0%" in chart.sentence
    assert [row[0] for row in chart.rows] == [str(k) for k in range(10, 101, 10)]
    both = draw_precision([record, other])
    assert names(both)[::2] == ["one, p-score", "two, p-score"]
    assert [trace["line"]["dash"] for trace in both.data] == ["solid", "dash", "solid", "dash"]
