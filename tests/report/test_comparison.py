from concont.report.comparison import ABREAST, compare_figures, compare_settings, list_changes
from concont.report.record import read_record
from made_runs import make_measured, make_quality, make_resolution, make_rows, make_run


def make_records(tmp_path, thresholds):
    paths = [
        make_run(tmp_path / f"run{k}", method={"threshold": value})
        for k, value in enumerate(thresholds)
    ]
    return [read_record(path) for path in paths]


def test_a_few_runs_have_a_column_of_settings_each(tmp_path):
    table = compare_settings(make_records(tmp_path, [0.8, 0.9]))
    assert table.head == ["setting", "run0", "run1"]
    assert ["method.threshold", "0.8", "0.9"] in table.rows


def test_many_runs_have_a_row_each(tmp_path):
    thresholds = [0.8 + 0.01 * k for k in range(ABREAST + 1)]
    table = compare_settings(make_records(tmp_path, thresholds))
    assert table.head[0] == "run"
    place = table.head.index("method.threshold")
    assert [row[0] for row in table.rows] == [f"run{k}" for k in range(ABREAST + 1)]
    assert [float(row[place]) for row in table.rows] == thresholds


def test_the_same_settings_are_no_table(tmp_path):
    assert compare_settings(make_records(tmp_path, [0.8, 0.8])) is None
    assert compare_settings(make_records(tmp_path / "one", [0.8])) is None


def test_figures_stand_in_a_row_a_run(tmp_path):
    records = make_records(tmp_path, [0.8, 0.9])
    begun = make_run(tmp_path / "begun", epochs=9, rows=make_rows(1), finished=False)
    measured = make_measured(make_resolution(n=60), quality=make_quality())
    table = compare_figures([*records, read_record(begun)], {"run0": measured})
    first, second, third = (dict(zip(table.head, row, strict=True)) for row in table.rows)
    assert (first["accuracy"], first["measured on"]) == ("87.50\u00a0%", "50 test images")
    assert (first["to review"], first["calibration error"]) == ("7 of 60", "5.00\u00a0%")
    assert (second["to review"], second["state"]) == ("", "finished")
    assert third["state"] == "running, epoch 1 of 9"


def test_a_column_that_no_run_fills_is_left_out(tmp_path):
    rows = make_rows(1, confident=None, loss=None)
    table = compare_figures([read_record(make_run(tmp_path / "run", rows=rows))])
    assert {"confident", "loss", "to review"} & set(table.head) == set()


def test_what_the_user_chose():
    table = list_changes("the recipe x", {"train.epochs": (3, 800), "views.flip": (False, True)})
    assert table.rows == [["train.epochs", "3", "800"], ["views.flip", "false", "true"]]
    assert list_changes("the recipe x", {}) is None
