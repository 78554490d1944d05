import hashlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from concont.errors import ConcontError
from concont.images import decoding_processes
from concont.images.decoding_processes import Target, verify_files
from concont.images.files import read_image
from concont.images.packs import Form
from pictures import noise

FORM = Form(5, 4, 3, "crop")


@pytest.fixture
def tasks(save):
    """Seventy images, one of them broken: enough for two processes."""
    paths = [save(f"{k}.png", noise(9, 7, 3, seed=k)) for k in range(70)]
    paths[33].write_text("no image")
    return [(row, str(path)) for row, path in enumerate(paths)]


@pytest.fixture
def target(tmp_path):
    pack = tmp_path / "pack"
    pack.write_bytes(bytes(70 * FORM.nbytes))
    return Target(str(pack), 0, FORM, [])


def decode_files(tasks, target, report=None):
    """All results; report hears of each few."""
    results = []

    def take(more):
        results.extend(more)
        if report is not None:
            report(len(results), len(tasks))

    decoding_processes.decode_files(tasks, target, take)
    return results


@pytest.fixture
def started(monkeypatch):
    """The processes that are started, as if there were two cores."""
    monkeypatch.setattr("os.sched_getaffinity", lambda _: range(2))
    started = []

    class Process(decoding_processes._Process):
        def __init__(self, target):
            super().__init__(target)
            started.append(self.process)

    monkeypatch.setattr(decoding_processes, "_Process", Process)
    yield started
    assert all(process.returncode is not None for process in started)


@pytest.mark.parametrize("cores", [1, 2])
def test_every_image_is_in_its_row(tasks, target, started, monkeypatch, cores):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: range(cores))
    heard = []
    results = decode_files(tasks, target, lambda done, total: heard.append((done, total)))
    assert len(started) == (0 if cores == 1 else 2)
    assert sorted(result.row for result in results) == list(range(70))
    (broken,) = (result for result in results if result.problem is not None)
    assert (broken.row, broken.problem) == (33, "not an image that can be read")
    pixels = np.fromfile(target.pack, np.uint8).reshape(70, 5, 4, 3)
    for row, path in tasks:
        expected = 0 if row == 33 else read_image(path, (5, 4), 3, "crop")
        assert np.array_equal(pixels[row], np.broadcast_to(expected, (5, 4, 3)))
    assert [total for _, total in heard] == [70] * len(heard)
    done = [count for count, _ in heard]
    assert done == sorted(done)
    assert done[-1] == 70


@pytest.mark.parametrize("cores", [1, 2])
def test_files_are_verified_in_order(tasks, started, monkeypatch, cores):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: range(cores))
    heard = []
    states = verify_files([path for _, path in tasks], lambda *counts: heard.append(counts))
    assert len(started) == (0 if cores == 1 else 2)
    assert [state.row for state in states] == list(range(70))
    assert states[33].problem == "not an image that can be read"
    for state, (_, path) in zip(states, tasks, strict=True):
        assert state.content == hashlib.sha256(Path(path).read_bytes()).hexdigest()
        assert state.problem is None or state.row == 33
        assert not state.written
    assert heard[-1] == (70, 70)
    assert verify_files([]) == []


# No `if __name__ == "__main__"`: processes that ran it again would start further ones.
SCRIPT = """
import os, sys
from pathlib import Path
os.sched_getaffinity = lambda _: range(2)
from concont.images.decoding_processes import verify_files
print(len(verify_files(sorted(map(str, Path(sys.argv[1]).iterdir())))))
"""


def test_a_plain_script_may_verify_files(tasks, tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    words = [sys.executable, tmp_path / "script.py", tmp_path / "images"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("70\n", "")


def test_few_images_need_no_process(tasks, target, started):
    assert len(decode_files(tasks[:63], target)) == 63
    assert not started
    assert decode_files([], target) == []


def test_a_killed_process_is_told_and_ends_the_others(tasks, target, started):
    def kill(done, total):
        os.kill(started[0].pid, signal.SIGKILL)

    with pytest.raises(ConcontError, match="was killed, as happens where memory runs out, at one"):
        decode_files(tasks, target, kill)


def test_a_process_that_cannot_start_says_why(tasks, target, started, monkeypatch):
    monkeypatch.setattr(decoding_processes, "PROGRAM", "raise ImportError('no such thing')")
    with pytest.raises(ConcontError, match="ended with code 1.*ImportError: no such thing"):
        decode_files(tasks, target)


def test_what_the_disk_refuses_is_an_error_of_the_system(tasks, target, started):
    Path(target.pack).unlink()
    with pytest.raises(OSError, match="No such file"):
        decode_files(tasks, target)


def test_an_interrupt_ends_all_processes_at_once(tasks, target, started):
    def interrupt(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        decode_files(tasks, target, interrupt)
    assert len(started) == 2
    for process in started:
        with pytest.raises(ProcessLookupError):
            os.kill(process.pid, 0)


def test_a_process_whose_parent_is_gone_ends(tasks, target, started):
    process = decoding_processes._Process(target)
    with process:
        process.hand(tasks[:3])
        assert len(process.take()) == 3
        process.input.close()
        began = time.perf_counter()
        assert process.process.wait(20) == 0
        assert time.perf_counter() - began < 10
