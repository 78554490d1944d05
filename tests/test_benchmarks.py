"""The scripts in benchmarks/ tell a user's mistake in one line."""

import runpy
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parent.parent / "benchmarks"
NO_CIFAR = (
    "cifar10 is not under nope: neither cifar10.npz nor cifar-10-batches-py/data_batch_1; "
    "say where it lies with --root, or let --download fetch it\n"
)


@pytest.mark.parametrize(
    ("name", "words", "said"),
    [
        ("real_partial.py", ["nope.mat"], "nope.mat: no such file\n"),
        ("parm_hardened.py", ["--root", "nope", "--out", "nope.json"], NO_CIFAR),
    ],
)
def test_data_that_are_not_there_are_no_traceback(name, words, said, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", [name, *words])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(SCRIPTS / name), run_name="__main__")
    assert ended.value.code == 2
    assert capsys.readouterr().err == said
