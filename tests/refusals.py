"""The command in this process: the same entry point and exit code as in one of its own, sooner."""

import subprocess
import sys
from unittest.mock import patch

import pytest

from concont.cli import main


def run_here(capsys, *words):
    """Run the command to its end; returns what a finished process would."""
    words = [str(word) for word in words]
    capsys.readouterr()
    with patch.object(sys, "argv", ["concont", *words]), pytest.raises(SystemExit) as ended:
        main()
    text = capsys.readouterr()
    return subprocess.CompletedProcess(words, ended.value.code, text.out, text.err)


def assert_refused(done, code, message, folder):
    """One line on standard error says why, and nothing was written."""
    assert done.returncode == code, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (folder / "runs").exists()
