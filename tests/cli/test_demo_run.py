"""What the demonstration compares; tests/test_wheel.py runs it whole."""

from concont.cli.demo_run import SYSTEMS, prepare_systems


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
