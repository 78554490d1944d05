import json

import pytest

from concont.bench.finished_run import describe_run_time
from concont.errors import UsageError
from concont.runs.folder import RunFolder
from concont.runs.summary import Summary
from metrics_lines import metrics_line

SUMMARY = {
    **{"method": "concont", "recipe": "digits", "data": "digits", "settings_hash": "a1"},
    **{"labeled": 0.1, "ambiguity": 0.3, "unlabeled": True, "seed": 1},
    **{"epochs": 3, "accuracy_last": 0.93, "accuracy_best": 0.93},
}


@pytest.fixture
def folder(tmp_path):
    spent = {"first_step": 20.0, "steps": 70.0, "evaluation": 6.0, "other": 4.0}
    RunFolder(tmp_path).write_summary(Summary(**SUMMARY, seconds=100.0, seconds_by=spent))
    rows = [(40.0, 0.5), (70.0, 0.91), (99.0, 0.93)]
    lines = [json.dumps(metrics_line(i, seconds=s, accuracy=a)) for i, (s, a) in enumerate(rows)]
    (tmp_path / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    return RunFolder(tmp_path)


@pytest.mark.parametrize(("passing", "when"), [(0.91, 70.0), (0.92, 99.0), (0.95, None)])
def test_a_run_says_its_share_of_other_time_and_when_it_passed(folder, passing, when):
    found = describe_run_time(folder, passing)
    assert found["evaluation_and_other"] == pytest.approx(0.10)
    assert found["passed_at_s"] == when


def test_a_run_without_accuracies_passes_nothing(folder):
    (folder / "metrics.jsonl").write_text(json.dumps(metrics_line()) + "\n")
    assert describe_run_time(folder, 0.5)["passed_at_s"] is None


@pytest.mark.parametrize("spent", [None, {"features": 1.0, "fit": 2.0}])
def test_a_run_that_did_not_keep_its_times_is_refused(folder, spent):
    folder.write_summary(Summary(**SUMMARY, seconds=3.0, seconds_by=spent))
    with pytest.raises(UsageError, match="does not say what its time went to"):
        describe_run_time(folder, 0.9)


def test_an_unfinished_run_is_refused(tmp_path):
    with pytest.raises(UsageError, match="no finished run"):
        describe_run_time(RunFolder(tmp_path), 0.9)
