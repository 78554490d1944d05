import json
import signal
import socket
import urllib.request

import pytest

from made_runs import make_run
from processes import concont, start

pytestmark = pytest.mark.slow


@pytest.fixture
def run(tmp_path):
    return make_run(tmp_path / "run")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_it_is_ended(run, number):
    process = start("watch", run, "--port", "0", "--no-open")
    said = process.stdout.readline()
    assert said.startswith(f"watching {run} on http://127.0.0.1:")
    url = said.split(" on ")[1].split(";")[0]
    with urllib.request.urlopen(f"{url}state.json", timeout=20) as answer:
        assert json.load(answer)["parts"]["runs"] == ["run"]
    process.send_signal(number)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out, err) == (0, "stopped watching\n", "")


def test_a_run_that_is_not_there_yet_is_waited_for(tmp_path):
    process = start("watch", "later", "--port", "0", "--no-open", cwd=tmp_path)
    assert process.stdout.readline() == "there is no run in later yet: waiting for one\n"
    url = process.stdout.readline().split(" on ")[1].split(";")[0]
    make_run(tmp_path / "later")
    with urllib.request.urlopen(f"{url}state.json", timeout=20) as answer:
        assert json.load(answer)["parts"]["runs"] == ["later"]
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)
    assert process.returncode == 0


def test_a_port_in_use_is_told_in_a_line(run):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = concont("watch", run, "--port", port, "--no-open")
    assert done.returncode == 1
    assert done.stderr == f"error: port {port} is in use; choose another with --port\n"


def test_a_file_is_refused(run):
    done = concont("watch", run / "config.yaml")
    assert done.returncode == 2
    assert "is a file; give the folder of a run, or a folder of runs" in done.stderr


def test_without_a_terminal_a_run_is_told_in_lines_to_its_end(run):
    done = concont("watch", run, "--tui")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line.split("  ")[:2] for line in lines] == [["run", f"epoch {k}"] for k in (1, 2, 3, 4)]
    assert lines[-1].endswith("confident 80.00 %  accuracy 87.50 %")
