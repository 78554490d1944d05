"""Full disks, folders that cannot be written, two processes at once, vanishing data, forks."""

import errno
import itertools
import os
import subprocess
import time

import numpy as np
import pytest

import concont as package
from concont.config.resolve import resolve
from concont.data.sources import from_arrays
from concont.errors import DataError
from concont.runs import folder as folder_module
from concont.runs.files import CONTENTS
from concont.runs.folder import RunFolder
from concont.training.prepare import prepare
from concont.training.trainers import reopen_run
from processes import WARM, concont, start, train_in_a_child
from refusals import run_here

QUICK = ("--data", "digits", "--epochs", "2", "--set", "model.width=4")
FOREVER = ("--data", "digits", "--epochs", "100000", "--set", "model.width=4")


def finish(run):
    for _ in run.execute():
        pass
    return (run.folder / "model.safetensors").read_bytes()


class Disk:
    """Is full from the n-th write to disk on, until there is space again."""

    def __init__(self, monkeypatch):
        self.left, self.fsync, self.full = 10**9, os.fsync, set()
        monkeypatch.setattr(folder_module.os, "fsync", self.write)

    def write(self, handle):
        self.left -= 1
        if self.left < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.fsync(handle)


@pytest.mark.parametrize(
    "every", [pytest.param(1, marks=[pytest.mark.slow, pytest.mark.long], id="all"), 5]
)
def test_a_disk_that_is_full_at_any_write_loses_nothing(
    tmp_path, toy_arrays, toy_config, monkeypatch, every
):
    """Whichever file is being written, the run goes on to the very same weights."""
    data, settings = from_arrays(toy_arrays), resolve(toy_config)
    expected = finish(prepare(settings, RunFolder(tmp_path / "whole"), data))
    disk, failed = Disk(monkeypatch), ""
    for moment in itertools.count(0, every):
        disk.left, folder = moment, RunFolder(tmp_path / str(moment))
        try:
            finish(prepare(settings, folder, data))
        except OSError as error:
            failed = str(error.filename)
            disk.full.add(os.path.basename(failed))
        else:
            break
        assert str(folder.path) in failed
        disk.left = 10**9
        begun = (folder / "config.yaml").is_file()
        run = reopen_run(folder, data) if begun else prepare(settings, folder, data)
        assert finish(run) == expected, moment
        assert package.load(folder.path).summary.steps == 6
    assert moment > 40
    assert disk.full >= set(CONTENTS) - {"checkpoint.previous.pt", "checksums.json"} or every > 1


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="mounting takes a privilege")
def test_a_small_disk_is_named_and_with_space_the_run_goes_on(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", disk]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("nothing can be mounted here")
    try:
        done = concont("train", *QUICK, "--out", disk / "run")
        assert done.returncode == 1
        (line,) = done.stderr.splitlines()
        assert "No space left on device" in line
        assert f"go on with: concont train --resume {disk}" in line
        subprocess.run(["mount", "-o", "remount,size=60m", disk], check=True)
        again = concont("train", "--resume", disk / "run")
        assert again.returncode == 0, again.stderr
        assert concont("evaluate", disk / "run").returncode == 0
    finally:
        subprocess.run(["umount", disk], check=True)


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS])
def test_a_folder_that_cannot_be_written_is_named_in_a_line(
    tmp_path, monkeypatch, capsys, toy_npz, number
):
    """As on a disk that is read-only, which root may not write either."""

    def refuse(path, *_, **__):
        raise OSError(number, os.strerror(number), str(path))

    monkeypatch.setattr(folder_module.Path, "mkdir", refuse)
    small = ("--device", "cpu", "--epochs", "1", "--set", "model.width=4")
    done = run_here(capsys, "train", "--data", toy_npz, *small, "--out", tmp_path / "run")
    assert done.returncode == 1
    assert os.strerror(number) in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.fixture
def live(tmp_path):
    """The folder of a run that goes on and on, and its process."""
    process, end = start("train", *FOREVER, "--out", tmp_path / "run"), time.monotonic() + 60
    while not (tmp_path / "run" / "metrics.jsonl").exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.02)
    yield tmp_path / "run", process
    process.kill()
    process.communicate()


@pytest.mark.slow
def test_a_second_process_on_a_run_is_refused_until_the_first_has_died(live):
    run, process = live
    for words in (
        ("--resume", run),
        (*QUICK, "--out", run, "--overwrite"),
        (*QUICK, "--out", run),
    ):
        done = concont("train", *words)
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1
        assert f"is in use by process {process.pid} on" in done.stderr
    assert (run / "config.yaml").is_file()
    process.kill()
    process.wait()
    done = concont("train", *QUICK, "--out", run, "--overwrite")
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_of_two_starts_in_one_folder_one_wins(tmp_path):
    both = [start("train", *QUICK, "--out", tmp_path / "run") for _ in range(2)]
    told = [process.communicate()[1] for process in both]
    assert sorted(process.returncode for process in both) == [0, 2], told
    (refused,) = (text for text, process in zip(told, both, strict=True) if process.returncode)
    assert refused.count("\n") == 1
    assert "is in use by process" in refused or "is not empty" in refused
    epochs = [line["epoch"] for line in RunFolder(tmp_path / "run").metrics()]
    assert epochs == [2]


def test_data_that_changes_or_vanishes_in_mid_run_harms_nothing(
    tmp_path, toy_npz, toy_arrays, toy_config
):
    """What is read is read at the start; a resume looks again, and refuses what is not the same."""
    toy_config["data"]["source"] = str(toy_npz)
    expected = finish(prepare(resolve(toy_config), RunFolder(tmp_path / "whole")))
    run = prepare(resolve(toy_config), RunFolder(tmp_path / "run"))
    steps = run.execute()
    for _ in range(3):
        next(steps)
    content = toy_npz.read_bytes()
    np.savez(toy_npz, **{**toy_arrays, "x_train": toy_arrays["x_train"] // 2})
    steps.close()
    with pytest.raises(DataError, match="was trained on other data than what is in"):
        reopen_run(RunFolder(tmp_path / "run"))
    toy_npz.unlink()
    with pytest.raises(package.errors.ConcontError, match=r"toy\.npz"):
        reopen_run(RunFolder(tmp_path / "run"))
    toy_npz.write_bytes(content)
    again = reopen_run(RunFolder(tmp_path / "run"))
    toy_npz.unlink()
    assert finish(again) == expected


def test_a_clock_that_jumps_has_no_effect(tmp_path, toy_arrays, toy_config, monkeypatch):
    hours = itertools.cycle([0.0, 1e9, -1e9])
    monkeypatch.setattr(time, "time", lambda: 1.7e9 + next(hours))
    run = package.train(toy_config, data=toy_arrays, out=tmp_path / "run")
    assert 0 < run.summary.seconds < 60
    assert all(0 <= seconds < 60 for seconds in run.summary.seconds_by.values())


@pytest.mark.slow
def test_a_forked_child_can_train(tmp_path, toy_arrays, toy_config):
    process = WARM.Process(target=train_in_a_child, args=(toy_config, toy_arrays, tmp_path))
    process.start()
    process.join(60)
    hangs = process.is_alive()
    process.kill()
    assert not hangs
    assert process.exitcode == 0
    assert package.load(tmp_path / "child").summary.steps == 6
