"""The scripts in benchmarks/ tell a user's mistake in one line; the pages say what records hold."""

import json
import re
import runpy
from pathlib import Path

import pytest

from concont.paper.comparison import compare
from concont.paper.plan import cells_of

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


def found_at_60_epochs():
    """Tables 4, 5 and the bounds by row and data: ours as the page writes it, and the paper's."""
    ledger = json.loads((SCRIPTS / "results" / "ledger.json").read_text())
    short = [record for record in ledger if record["epochs"] == 60]
    for row in compare(cells_of("all"), short):
        ours = "" if row["ours_mean"] is None else f"{row['ours_mean']:.2f}"
        ours += f"±{row['ours_std']:.2f}" if row["ours_std"] is not None else ""
        if row["table"] in ("table4", "table5") or row["method"] == "Fully Supervised":
            paper = f"{row['paper_mean']:.2f}±{row['paper_std']:.2f}"
            yield (row["method"], row["data"]), [ours, paper]


def test_the_page_gives_the_first_rows_as_the_ledger_has_them():
    page = (ROOT / "docs" / "reproduce.md").read_text().split("## Run so far")[1]
    rows = re.findall("^[|].*", page, re.M)
    lines = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    cells, seen = dict(found_at_60_epochs()), 0
    for row, *given in lines:
        method = row.split(" (")[0].split(", ")[0]
        plain = [text.split(" (")[0] for text in given]
        if len(given) == 4 and (method, "cifar10") in cells:
            assert plain == cells[method, "cifar10"] + cells[method, "cifar100"], row
            seen += 1
        elif method == "Fully Supervised":
            data = row.split(", ")[1].replace("-", "").lower()
            assert plain == cells[method, data], row
            seen += 1
    assert seen == 9
    longest = json.loads((SCRIPTS / "results" / "cifar10-260-epochs.json").read_text())["summary"]
    assert f"at 260 epochs: {100 * longest['accuracy_last']:.2f}." in page
