import json

import numpy as np
import pytest

from concont.report.answer import (
    describe_answer,
    describe_data,
    describe_progress,
    tell_accuracy,
    tell_resolved,
    tell_review,
    tell_time,
)
from concont.report.record import read_record
from made_runs import make_measured, make_resolution, make_rows, make_run


@pytest.fixture
def record(tmp_path):
    return read_record(make_run(tmp_path / "run"))


@pytest.fixture
def unfinished(tmp_path):
    return read_record(make_run(tmp_path / "begun", epochs=9, rows=make_rows(3), finished=False))


def change_data(path, **values):
    file = path / "data.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **values}))


def test_the_answer_of_a_finished_run(record):
    resolution = make_resolution(n=60)
    facts = {fact.label: fact for fact in describe_answer(record, make_measured(resolution))}
    assert facts["Accuracy"].value == "87.50\u00a0%"
    assert facts["Accuracy"].note == "Of 50 test images, at the last epoch."
    assert facts["Images resolved"].value == "54 of 60"
    assert "No true labels are known" in facts["Images resolved"].note
    assert facts["Images to review"].value == "7"  # six that are not sure, one outside its set
    assert facts["Training time"].value == "1 min 48 s"
    assert facts["Training time"].note == "4 of 4 epochs, on the CPU, 1,000 images a second."


def test_right_labels_are_counted_where_the_truth_is_known(record):
    resolution = make_resolution(n=60)
    truth = resolution.label.copy()
    truth[1], truth[10], truth[2] = 0, 2, -1  # one sure label and one doubtful one are wrong
    measured = make_measured(make_resolution(n=60, truth=truth))
    note = tell_resolved(record, measured).note
    assert f"{100 * 52 / 53:.2f}\u00a0% are right; of all, {100 * 57 / 59:.2f}\u00a0%" in note


def test_without_a_test_set_it_says_that_nobody_can_say(tmp_path):
    path = make_run(tmp_path / "run", rows=make_rows(2, accuracy=None, accuracy_best=None))
    change_data(path, evaluated_on=None, n_test=0)
    fact = tell_accuracy(read_record(path))
    assert (fact.value, "nobody can say" in fact.note) == ("unknown", True)


def test_a_hold_out_is_called_one(tmp_path):
    path = make_run(tmp_path / "run")
    change_data(path, evaluated_on="holdout")
    assert "held out of the training" in tell_accuracy(read_record(path)).note


def test_a_method_without_thresholds_is_sure_of_nothing(record):
    measured = make_measured(make_resolution(n=60, confident=None))
    assert tell_resolved(record, measured).value == "60"
    assert "no thresholds" in tell_resolved(record, measured).note
    assert tell_review(record, measured).value == "20"


def test_the_record_alone_says_less(record, unfinished):
    assert tell_resolved(record, None).value == "240 of 300"
    assert tell_resolved(unfinished, None).value == "75.00\u00a0%"
    assert tell_review(unfinished, None).note == "The list is made when the run has ended."
    assert tell_accuracy(unfinished).label == "Accuracy so far"
    assert "epoch 3 of 9" in tell_accuracy(unfinished).note
    assert tell_time(unfinished).value == "6.0 s"


def test_what_it_learns_from(record, unfinished):
    assert describe_data(record) == (
        "concont learned from 300 images: 75 with candidate labels, 225 without any."
    )
    assert "learns from" in describe_data(unfinished)


def test_how_far_it_is(record, unfinished, tmp_path):
    assert describe_progress(record) == "finished"
    assert describe_progress(unfinished) == "running, epoch 3 of 9"
    waiting = make_run(tmp_path / "waiting", rows=[], finished=False)
    assert describe_progress(read_record(waiting)) == "waiting"


def test_a_run_without_epochs(tmp_path):
    rows = make_rows(1, images_per_s=np.pi)
    record = read_record(make_run(tmp_path / "run", rows=rows, method={"name": "sspl"}))
    assert record.epochs is None
    assert tell_time(record).note == "On the CPU, 3.14 images a second."
