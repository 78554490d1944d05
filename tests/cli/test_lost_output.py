"""A run outlives whoever reads what it prints."""

import io
import os
import subprocess
import sys

import pytest

from concont.cli.lost_output import MayEnd, fill_closed_descriptors, output_may_end
from processes import COMMAND, ENVIRONMENT, SECONDS

QUICK = ("--data", "digits", "--epochs", "2", "--set", "model.width=4")


def train(folder, redirection):
    """A training of whose output the shell does something; its exit code and standard error."""
    words = " ".join([*COMMAND, "train", *QUICK, "--out", str(folder), redirection])
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {words}"],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    return done.returncode, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "redirection",
    [
        "| head -c 1",
        pytest.param("> /dev/full", marks=pytest.mark.long),
        pytest.param(">&- 2>&-", marks=pytest.mark.long),
        pytest.param("2>&1 | head -c 1", marks=pytest.mark.long),
    ],
)
def test_a_run_whose_output_is_lost_comes_to_its_end(tmp_path, redirection):
    code, errors = train(tmp_path / "run", redirection)
    assert code == 0, errors
    assert (tmp_path / "run" / "summary.json").is_file()
    assert "Traceback" not in errors
    assert errors.count("training goes on") == ("2>" not in redirection)


def test_a_closed_pipe_takes_all_and_says_so_once(caplog):
    reading, writing = os.pipe()
    os.close(reading)
    stream = MayEnd(io.TextIOWrapper(os.fdopen(writing, "wb"), write_through=True))
    for _ in range(3):
        assert stream.write("word\n") == 5
        stream.flush()
    assert len(caplog.messages) == 1
    assert "Broken pipe" in caplog.text
    assert stream.encoding == stream.stream.encoding
    stream.stream.close()


def test_the_stream_is_put_back(monkeypatch):
    before = sys.stdout
    with output_may_end():
        assert isinstance(sys.stdout, MayEnd)
    assert sys.stdout is before
    monkeypatch.setattr(sys, "stdout", None)  # closed from the start
    with output_may_end():
        assert sys.stdout is None


def test_a_closed_descriptor_is_taken_by_no_file(tmp_path):
    code = (
        "import os\n"
        "from concont.cli.lost_output import fill_closed_descriptors\n"
        "os.close(0); os.close(2)\n"
        "fill_closed_descriptors()\n"
        "found = os.open('mine', os.O_CREAT | os.O_WRONLY)\n"
        "os.write(2, b'a warning'); os.write(1, str(found).encode())\n"
    )
    run = [sys.executable, "-c", code]
    done = subprocess.run(run, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, check=True)
    assert int(done.stdout) > 2
    assert (tmp_path / "mine").read_bytes() == b""
    fill_closed_descriptors()  # nothing to do here
