"""Launchers by name, and jobs in this process."""

import pytest

from concont.errors import UsageError
from concont.sweep.launch import LAUNCHERS, choose_launcher, in_this_process
from sweeps import tiny


def test_in_this_process(tmp_path):
    job = tiny(1, 1)
    (outcome,) = in_this_process([job], tmp_path)
    assert outcome.record["settings_hash"] == job.key
    assert [again.record for again in in_this_process([job], tmp_path)] == [outcome.record]


def test_a_launcher_by_name_with_options(monkeypatch):
    def fake(jobs, folder, parallel, /, **options):
        return iter([jobs, folder, parallel, options])

    monkeypatch.setitem(LAUNCHERS, "slurm", fake)
    options = ["slurm_partition=gpu", "timeout_min=60", "folder=x"]
    found = list(choose_launcher("slurm", options)([], "somewhere", 2))
    given = {"slurm_partition": "gpu", "timeout_min": 60, "folder": "x"}
    assert found == [[], "somewhere", 2, given]
    assert choose_launcher("local")([], "somewhere", 1) is not None
    with pytest.raises(UsageError, match="no launcher 'pbs'; there are local, ray, slurm"):
        choose_launcher("pbs")
    with pytest.raises(UsageError, match="takes no --launcher-options"):
        choose_launcher("local", ["num_cpus=1"])
    for wrong in ("num_cpus", "=1", "a b=1"):
        with pytest.raises(UsageError, match="write key=value"):
            choose_launcher("ray", [wrong])
