"""The scripts in benchmarks/ tell a user's mistake in one line; the pages say what records hold."""

import json
import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SCRIPTS = ROOT / "benchmarks"
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


def test_the_page_gives_hardened_labels_as_recorded():
    rows = json.loads((SCRIPTS / "results" / "parm-hardened.json").read_text())["rows"]
    assert [row["q"] for row in rows] == [0.3, 0.5, 0.7]
    machines = [[*row["as_spread"], *row["hardened"]] for row in rows]
    assert all([m["lam"] for m in four] == [1, 10_000, 1, 10_000] for four in machines)
    columns = [
        [
            *(f"{100 * machine['accuracy']:.1f}" for machine in four),
            f"{row['rows']:,}",
            f"{100 * row['likeliest_is_right']:.1f}",
            f"{100 * row['likeliest_has_more_than_half']:.1f}",
            f"{100 * four[3]['rows_at_the_margin']:.1f}",
        ]
        for row, four in zip(rows, machines, strict=True)
    ]
    page = (ROOT / "docs" / "classic.md").read_text().split("parm-hardened.json")[1]
    found = re.findall(r"^\| \S.* \| ([\d.,]+) \| ([\d.,]+) \| ([\d.,]+) \|$", page, re.M)
    ours = [line for line in found if line != ("47.15", "42.16", "30.69")]  # the paper's
    assert ours == list(zip(*columns, strict=True))
