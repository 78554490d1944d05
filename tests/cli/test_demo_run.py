"""What the demonstration compares; tests/test_wheel.py runs it whole."""

import re

import pytest

from concont.cli.demo_run import SYSTEMS, prepare_systems, print_summaries
from concont.runs.summary import Summary


def test_the_three_systems_share_data_seed_steps_and_batch(tmp_path):
    ready = prepare_systems(2, tmp_path)
    assert list(ready) == list(SYSTEMS)
    assert len({run.total_steps for run in ready.values()}) == 1
    assert len({run.order.batch_size for run in ready.values()}) == 1
    assert {run.settings.data.seed for run in ready.values()} == {2}
    assert {run.settings.train.seed for run in ready.values()} == {2}
    sets = {
        title: {
            int(row): tuple(members)
            for row, members in zip(run.problem.rows, run.problem.candidates, strict=True)
            if not members.all()
        }
        for title, run in ready.items()
    }
    assert sets["ConCont"] == sets["ConCont (partial only)"] == sets["Partial loss"]
    assert len(sets["ConCont"]) == 144
    assert len(ready["ConCont"].problem.rows) == 1437
    assert len(ready["ConCont (partial only)"].problem.rows) == 144
    assert all(run.problem.evaluated_on == "test" for run in ready.values())


@pytest.mark.parametrize("columns", [25, 40, 60, 100])
def test_the_table_has_whole_numbers_on_every_screen(columns, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", str(columns))
    summary = Summary(
        **{"method": "concont", "recipe": "digits", "data": "digits", "settings_hash": "x"},
        **{"labeled": 0.1, "ambiguity": 0.3, "unlabeled": True, "seed": 1, "seconds": 1234.0},
        **{"accuracy_last": 0.98766, "accuracy_best": 0.99, "epochs": 80},
        **{"steps": 123456, "batch_size": 64},
    )
    print_summaries({"ConCont (partial only)": summary})
    shown = capsys.readouterr().out
    for cell in ("123456", "64", "1234", "98.77 %"):
        assert re.search(rf"[│:] +{cell}( |$)", shown, re.MULTILINE), cell
    assert shown.startswith("Digits, 10% of the images with candidate sets, q = 0.3, seed 1\n")
