"""The folder of a sweep: one lock a job, and whole files."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from concont.config.resolve import read_settings
from concont.errors import DataError
from concont.sweep.folder import SweepFolder
from concont.sweep.record import write
from sweeps import record_of, tiny

JOB = tiny(1, 1)


def test_a_job_has_one_lock(tmp_path):
    sweep, other = SweepFolder(tmp_path), tiny(2, 1)
    with (
        sweep.lock(JOB.key),
        sweep.lock(other.key, wait=False),
        pytest.raises(BlockingIOError),
        sweep.lock(JOB.key, wait=False),
    ):
        pass
    with sweep.lock(JOB.key, wait=False):
        pass


def test_settings_are_written_by_many_at_once_and_are_whole(tmp_path):
    """As by two sweeps that share jobs and launch them elsewhere, where no lock is held yet."""
    sweep = SweepFolder(tmp_path)
    with ThreadPoolExecutor(8) as writers:
        list(writers.map(lambda _: sweep.write_settings(JOB), range(40)))
    assert read_settings(sweep.settings(JOB.key)) == JOB.settings
    assert [path.name for path in (tmp_path / "runs").iterdir()] == [f"{JOB.key}.yaml"]


def test_only_a_jobs_own_record_is_its_record(tmp_path):
    sweep = SweepFolder(tmp_path)
    write(sweep.result(JOB.key), record_of(JOB.settings))
    assert sweep.load_record(JOB.key) == record_of(JOB.settings)
    write(sweep.result(JOB.key), record_of(tiny(2, 1).settings))
    with pytest.raises(DataError, match="is not the record of this run"):
        sweep.load_record(JOB.key)
