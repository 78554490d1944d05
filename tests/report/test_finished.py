from concont.answers.calibration import Calibration
from concont.report.class_charts import Bin
from concont.report.finished import make_page, view_run
from concont.report.measured import Measured
from concont.report.record import read_record
from made_runs import make_measured, make_quality, make_resolution, make_rows, make_run

BINS = {"as trained": [Bin(0.9, 0.8, 40)], "calibrated": [Bin(0.8, 0.8, 40)]}


def test_a_run_with_everything(tmp_path):
    record = read_record(make_run(tmp_path / "run"))
    resolution = make_resolution(n=60, calibration=Calibration(1.5, 40, 0.1, 0.02))
    view = view_run(record, make_measured(resolution, quality=make_quality(), bins=BINS))
    assert set(view.charts) == {"thresholds", "classes", "confusion", "reliability", "map"}
    said = view.charts["reliability"].sentence
    assert "A temperature of 1.50" in said
    assert "from 10.00\u00a0% to 2.00\u00a0%" in said
    assert len(view.cards) == 20
    assert view.changes.rows[0][0] == "train.epochs"
    assert view.missing == []


def test_a_run_that_has_not_ended_says_what_is_missing(tmp_path):
    record = read_record(make_run(tmp_path / "run", rows=make_rows(2), finished=False))
    page = make_page([record], review=5)
    (view,) = page.runs
    assert any("the run has not ended" in sentence for sentence in view.missing)
    assert set(view.charts) == {"thresholds"}
    assert page.title == "run"


def test_a_run_without_an_evaluation(tmp_path):
    record = read_record(make_run(tmp_path / "run", rows=[], finished=False))
    assert "No curves: the run has not been evaluated yet." in view_run(record, Measured()).missing


def test_a_run_that_knows_no_truth_and_has_no_test_set(tmp_path):
    rows = make_rows(2, accuracy=None, accuracy_best=None)
    path = make_run(tmp_path / "run", rows=rows)
    record = read_record(path)
    record.verdict["precision"] = {"p_score": None, "max_probability": None}
    said = " ".join(view_run(record, Measured(missing=("And more.",))).missing)
    assert "No precision of scores" in said
    assert said.endswith("And more.")


def test_settings_that_cannot_be_read_any_more(tmp_path):
    path = make_run(tmp_path / "run")
    text = (path / "config.yaml").read_text()
    (path / "config.yaml").write_text(text + "nosuch: {}\n")
    view = view_run(read_record(path), Measured())
    assert view.changes is None
    assert any("run/config.yaml: unknown section nosuch" in sentence for sentence in view.missing)
    assert not any(str(tmp_path) in sentence for sentence in view.missing)
