"""The scripts in benchmarks/ tell a user's mistake in one line."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SCRIPTS = ROOT / "benchmarks"
NO_CIFAR = (
    "cifar10 is not under nope: neither cifar10.npz nor cifar-10-batches-py/data_batch_1; "
    "say where it lies with --root, or let `concont train --download` fetch it\n"
)


@pytest.mark.parametrize(
    ("name", "words", "said"),
    [
        ("real_partial.py", ["nope.mat"], "nope.mat: no such file\n"),
        ("parm_hardened.py", ["--root", "nope", "--out", "nope.json"], NO_CIFAR),
        ("own_data.py", ["nope-trial", "--root", "nope"], NO_CIFAR),
        ("serving.py", ["nope.onnx"], "nope.onnx: no such file\n"),
        ("kernels.py", ["pico"], "kernels are watched on a GPU; there is none here\n"),
    ],
)
def test_what_is_not_there_is_no_traceback(name, words, said, monkeypatch, capsys):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr("sys.argv", [name, *words])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(SCRIPTS / name), run_name="__main__")
    assert ended.value.code == 2
    assert capsys.readouterr().err == said
