"""`concont results`, each time as a process."""

import json

import pytest

from concont.paper.plan import cells_of
from concont.sweep.record import write
from processes import concont as command
from sweeps import made_up_record


def concont(*words):
    return command("results", *words)


@pytest.fixture
def folder(tmp_path):
    """A ledger with two runs that came from elsewhere."""
    cells = [cell for cell in cells_of("table4") if cell.data == "cifar10"]
    for n, cell in enumerate(cells[:2]):
        write(tmp_path / "carried" / f"{n}.json", made_up_record(cell, accuracy=0.5 + n / 10))
    merged = concont("merge", tmp_path / "carried", "--folder", tmp_path / "r")
    assert merged.stdout == "2 added, 0 known already\n", merged.stderr
    return tmp_path / "r"


def test_an_empty_ledger_shows_the_paper(tmp_path):
    shown = concont("--against", "paper", "--json", "--folder", tmp_path)
    rows = json.loads(shown.stdout)
    assert len(rows) == len(cells_of("all"))
    assert {row["ours_mean"] for row in rows} == {None}
    assert concont("--folder", tmp_path).returncode == 0


def test_ours_stand_beside_the_paper(folder):
    shown = concont("--against", "paper", "--table", "table4", "--folder", folder).stdout
    (line,) = (line for line in shown.splitlines() if "w/o L_part" in line and "cifar10 " in line)
    assert [part.strip() for part in line.strip("│ ").split("│")] == [
        *("w/o L_part", "cifar10", "10%", "0.5", "44.32±1.51", "60.00", "+15.68", "1", "60")
    ]


def test_records_are_filtered(folder):
    whole = json.loads(concont("--json", "--folder", folder).stdout)
    assert [record["recipe"] for record in whole] == ["cifar10", "cifar10+wo-part"]
    (one,) = json.loads(concont("--recipe", "cifar10+wo-part", "--json", "--folder", folder).stdout)
    assert one == whole[1]
    assert json.loads(concont("--seed", "2", "--json", "--folder", folder).stdout) == []
    assert "60.00 %" in concont("--folder", folder).stdout


def test_figures_are_drawn_without_a_run(folder, tmp_path):
    """Of the two runs one counts for Figure 1."""
    shown = concont("--figures", tmp_path / "drawn", "--folder", folder)
    assert shown.returncode == 0, shown.stderr
    paths = [tmp_path / "drawn" / f"figure1.{ending}" for ending in ("csv", "svg", "png")]
    assert shown.stdout == "".join(f"drawn: {path}\n" for path in paths)
    assert all(path.stat().st_size > 50 for path in paths)
    none = concont("--figures", tmp_path / "drawn", "--seed", "7", "--folder", folder)
    assert none.stdout == ""
    assert none.stderr.startswith("nothing to draw in ")
    assert concont("--seed", "7", "--folder", folder).stderr == "no run of these in the ledger\n"


def test_duplicates_are_ignored(folder):
    again = concont("merge", folder.parent / "carried" / "1.json", "--folder", folder)
    assert again.stdout == "0 added, 1 known already\n"


def test_wrong_use_is_told_in_one_line(tmp_path):
    for words, message, code in (
        (["--against", "me"], "there is only the paper", 2),
        (["--table", "table1"], "--table goes with --against paper", 2),
        (["--against", "paper", "--table", "table8"], "no 'table8' in the paper", 2),
        (["--against", "paper", "--data", "mnist"], "--data mnist: the paper has nothing", 2),
        (["--figures", "x", "--json"], "--figures draws; leave out", 2),
        (["--method", "DPLL"], "no method 'DPLL'; there are concont, ", 2),
        (["merge", tmp_path / "none.json"], "no such file or folder", 1),
        (["merge", tmp_path], "holds no finished run", 1),
    ):
        shown = concont(*words)
        assert shown.returncode == code
        assert message in shown.stderr
        assert "Traceback" not in shown.stderr
