"""The scripts in benchmarks/ tell a user's mistake in one line."""

import runpy
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parent.parent / "benchmarks"


def test_a_file_that_is_not_there_is_no_traceback(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["real_partial.py", "nope.mat"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(SCRIPTS / "real_partial.py"), run_name="__main__")
    assert ended.value.code == 2
    assert capsys.readouterr().err == "nope.mat: no such file\n"
