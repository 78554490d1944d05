"""A small share of `make fuzz`, and that it finds what it is there to find."""

import copy
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import fuzz
from concont.errors import DataError
from fuzz_reader import Reader
from fuzz_readers import READERS

SCRIPT = Path(__file__).parent / "fuzz.py"
# The other two spoil run folders in ways that take their time; `make fuzz` has them.
QUICK = [name for name in READERS if name not in ("run", "run-record")]


@pytest.mark.slow
@pytest.mark.timeout(200)
def test_a_share_of_all_cases(capsys):
    found = fuzz.run_in_child(fuzz.FIXED, 20, *QUICK)
    assert found == 0, capsys.readouterr().out


class Bad(Reader):
    """Reads by a function."""

    def __init__(self, work):
        self.work = work

    def make(self, folder, draw):
        return b"content"

    def read(self, path):
        self.work(path)


def refuse(path):
    raise DataError("no")


def fail(path):
    raise ValueError("not foreseen")


FINDINGS = {
    "nothing": (lambda path: path.read_bytes(), None),
    "refusal": (refuse, None),
    "system": (lambda path: (path / "x").read_text(), None),
    "error": (fail, "not foreseen"),
    "hang": (lambda path: time.sleep(20), "longer than"),
    "exit": (lambda path: sys.exit(), "SystemExit"),
}


@pytest.mark.parametrize("kind", FINDINGS)
def test_what_a_finding_is(kind, tmp_path, monkeypatch):
    work, expected = FINDINGS[kind]
    monkeypatch.setattr(fuzz, "SECONDS", 0.3)
    before = signal.signal(signal.SIGALRM, fuzz.stop)
    found = fuzz.run_case(fuzz.Case(1, "bad", 0), Bad(work), tmp_path, [])
    signal.signal(signal.SIGALRM, before)
    assert found is None if expected is None else expected in found


PLANTED = """
import sys; sys.path.insert(0, {folder!r})
import subprocess, fuzz, fuzz_readers
from test_fuzz import Bad
fuzz_readers.READERS = {{
    "reads": Bad(lambda path: open({own!r})),
    "passwords": Bad(lambda path: open("/etc/passwd")),
    "writes": Bad(lambda path: open({own!r}, "w")),
    "starts": Bad(lambda path: subprocess.run(["true"])),
    "memory": Bad(lambda path: bytes(3 * 2**30)),
    "nothing": Bad(lambda path: path.read_bytes()),
}}
fuzz.run_all(list(fuzz_readers.READERS), 1, 1)
"""


@pytest.mark.slow
def test_what_is_watched(tmp_path):
    (tmp_path / "own.txt").touch()
    code = PLANTED.format(folder=str(SCRIPT.parent), own=str(tmp_path / "own.txt"))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    found = re.findall("FOUND --seed 1 --reader ([a-z]+) --case 0", done.stdout)
    assert found == ["reads", "passwords", "writes", "starts", "memory"], done.stdout + done.stderr


def test_a_case_is_the_same_every_time():
    content = os.urandom(200)
    first, again, other = (fuzz.Case(1, "npz", k).draw for k in (3, 3, 4))
    assert fuzz.spoil(content, first) == fuzz.spoil(content, again)
    assert fuzz.spoil(content, other) != fuzz.spoil(content, fuzz.Case(1, "npz", 3).draw)


def test_what_is_put_into_a_case_is_not_what_later_ones_are_given():
    before, stream = copy.deepcopy(fuzz.ODD), random.Random(1)
    for _ in range(2000):
        fuzz.spoil_values({"a": [1, {"b": 2}], "c": 3}, stream)
    assert repr(before) == repr(fuzz.ODD)
