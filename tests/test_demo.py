"""The demonstration, whole, as a user runs it."""

import json

import pytest

from concont.demo import SYSTEMS, jobs
from processes import concont

MARGIN = 0.02


def test_the_three_systems_share_data_seed_steps_and_batch(tmp_path):
    ready = jobs(2, tmp_path)
    assert list(ready) == list(SYSTEMS)
    assert len({job.total_steps for job in ready.values()}) == 1
    assert len({job.order.batch_size for job in ready.values()}) == 1
    assert {job.settings.data.seed for job in ready.values()} == {2}
    assert {job.settings.train.seed for job in ready.values()} == {2}
    sets = {
        title: {
            int(row): tuple(members)
            for row, members in zip(job.problem.rows, job.problem.candidates, strict=True)
            if not members.all()
        }
        for title, job in ready.items()
    }
    assert sets["ConCont"] == sets["ConCont (partial only)"] == sets["Partial loss"]
    assert len(sets["ConCont"]) == 144
    assert len(ready["ConCont"].problem.rows) == 1437
    assert len(ready["ConCont (partial only)"].problem.rows) == 144
    assert all(job.problem.evaluated_on == "test" for job in ready.values())


@pytest.mark.slow
def test_the_demo_ends_with_concont_ahead(tmp_path):
    done = concont("demo", "--seed", "3", "--out", "demo", cwd=tmp_path, threads=2)
    assert done.returncode == 0, done.stderr
    folders = ("concont", "concont-partial-only", "partial-loss")
    summaries = [json.loads((tmp_path / "demo" / f / "summary.json").read_text()) for f in folders]
    whole, partial_only, plain = (summary["accuracy_last"] for summary in summaries)
    assert whole > partial_only + MARGIN
    assert whole > plain + MARGIN
    assert sum(summary["seconds"] for summary in summaries) < 120
    assert f"{100 * whole:.2f} %" in done.stdout
    assert "Runs: demo" in done.stdout
