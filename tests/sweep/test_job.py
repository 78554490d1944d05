"""A job is a settings file and the hash that its record will have."""

from dataclasses import replace

import numpy as np
import pytest

from concont.config.resolve import read_settings, resolve, write_yaml
from concont.data.own_data import load_data
from concont.data.problem import make_candidate_sets
from concont.data.sources import load
from concont.errors import UsageError
from concont.runs.folder import RunFolder
from concont.sweep import job as module
from concont.sweep.job import Job, read_data_file
from concont.sweep.record import key_of, of_run
from concont.training.trainers import trainer_of
from sweeps import tiny


def record_of_run(settings, folder):
    for _ in trainer_of(settings).prepare(settings, RunFolder(folder)).execute():
        pass
    return of_run(RunFolder(folder))


@pytest.fixture
def settings(toy_npz, toy_config):
    toy_config["data"]["source"] = str(toy_npz)
    toy_config["train"]["epochs"] = 1
    return resolve(toy_config)


def test_named_data_needs_no_file():
    job = tiny(1, 2)
    assert job.key == job.settings.hash()
    assert job.key != tiny(1, 3).key
    assert replace(job, name="another") == job


def test_the_key_is_the_hash_of_the_record_of_data_without_a_name(tmp_path, settings):
    record = record_of_run(settings, tmp_path / "run")
    assert Job(settings, "mine").key == record["settings_hash"] == key_of(record)


def test_the_key_is_the_hash_of_the_record_with_a_file_of_candidate_sets(tmp_path, settings):
    make_candidate_sets(load(settings.data.source), settings.data).write(tmp_path / "sets.npz")
    given = replace(settings.data, candidates=str(tmp_path / "sets.npz"))
    settings = replace(settings, data=given)
    record = record_of_run(settings, tmp_path / "run")
    assert Job(settings, "mine").key == record["settings_hash"] == key_of(record)


def test_the_file_that_is_written_is_the_same_job(tmp_path, settings):
    for job in (Job(settings, "mine"), tiny(3, 1)):
        (tmp_path / "settings.yaml").write_text(write_yaml(job.settings))
        assert read_settings(tmp_path / "settings.yaml") == job.settings


def test_a_file_of_data_is_read_once_until_it_changes(toy_npz, toy_arrays, settings, monkeypatch):
    read = []
    monkeypatch.setattr(module, "load_data", lambda data: read.append(data) or load_data(data))
    first = read_data_file(settings.data)
    assert [Job(settings, "mine").key for _ in range(3)] == 3 * [settings.hash(first.digest)]
    assert (len(read), first.n_train) == (1, 40)
    np.savez(toy_npz, **{**toy_arrays, "x_train": toy_arrays["x_train"] + 1})
    assert read_data_file(settings.data).digest != first.digest


def test_data_that_is_not_there_is_told_when_the_job_is_made(settings, tmp_path):
    for source, message in (("", "does not say what to train on"), ("no.npz", "no such file")):
        data = replace(settings.data, source=source and str(tmp_path / source))
        with pytest.raises(UsageError, match=message):
            Job(replace(settings, data=data), "mine")
