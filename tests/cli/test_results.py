"""`concont results`, each time as a process."""

import json
import re

import pytest

from concont.config.resolve import resolve
from concont.paper.plan import cells_of
from concont.sweep.record import write
from processes import concont as command
from sweeps import made_up_record, record_of


def concont(*words, columns=200):
    return command("results", *words, columns=columns)


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
    again = concont("--figures", tmp_path / "drawn", "--folder", folder)
    assert again.returncode == 2
    assert "figure1.csv is there already; --overwrite replaces it" in again.stderr
    asked = ("--figures", tmp_path / "drawn", "--overwrite", "--folder", folder)
    assert concont(*asked).stdout == shown.stdout
    none = concont("--figures", tmp_path / "drawn", "--seed", "7", "--folder", folder)
    assert none.stdout == ""
    assert none.stderr.startswith("nothing to draw in ")
    assert concont("--seed", "7", "--folder", folder).stderr == "no run of these in the ledger\n"


def test_duplicates_are_ignored(folder):
    again = concont("merge", folder.parent / "carried" / "1.json", "--folder", folder)
    assert again.stdout == "0 added, 1 known already\n"


def test_runs_are_grouped_by_settings(folder):
    shown = concont("--by", "method.part_loss, data.labeled", "--folder", folder)
    assert shown.returncode == 0, shown.stderr
    lines = [[part.strip() for part in line.split("│")[1:-1]] for line in shown.stdout.splitlines()]
    assert [line for line in lines if line] == [
        ["partial", "0.1", "50.00", "1"],
        ["uniform", "0.1", "60.00", "1"],
    ]
    assert shown.stdout.startswith("accuracy in %, on test")
    (row,) = json.loads(concont("--by", "data.labeled", "--json", "--folder", folder).stdout)
    assert row == {
        "data.labeled": 0.1,
        "accuracy_mean": 0.55,
        "accuracy_std": pytest.approx(0.070711),
        "n": 2,
    }
    shown = concont("--by", "data.labeled", "--folder", folder)
    assert shown.stdout.endswith("\nalso differing inside the groups: method.part_loss\n")
    none = concont("--by", "data.labeled", "--seed", "7", "--folder", folder)
    assert (none.returncode, none.stderr) == (0, "no run of these in the ledger\n")


def test_a_recipe_of_ones_own_is_a_row_beside_the_papers(folder, tmp_path):
    (tmp_path / "cifar10-strong.yaml").write_text("views: {strong: pico}\n")
    settings = resolve(
        {"data": {"source": "cifar10", "labeled": 0.1, "ambiguity": 0.5}, "train": {"epochs": 60}},
        str(tmp_path / "cifar10-strong.yaml"),
    )
    write(tmp_path / "own.json", record_of(settings, 0.93))
    assert concont("merge", tmp_path / "own.json", "--folder", folder).returncode == 0
    words = ("--against", "paper", "--table", "table1", "--folder", folder)
    (row,) = [r for r in json.loads(concont(*words, "--json").stdout) if "strong" in r["method"]]
    assert row == {
        **{"table": "table1", "data": "cifar10", "labeled": 0.1, "q": 0.5},
        **{"method": "ConCont (strong)", "paper_mean": None, "paper_std": None},
        **{"ours_mean": 93.0, "ours_std": None, "seeds": [1], "epochs": 60},
        "recipe": "cifar10-strong",
    }
    assert "ConCont (strong)" in concont(*words).stdout
    assert "strong" not in concont(*words, "--recipe", "cifar10").stdout


def test_wrong_use_is_told_in_one_line(tmp_path):
    for words, message, code in (
        (["--against", "me"], "there is only the paper", 2),
        (["--table", "table1"], "--table goes with --against paper", 2),
        (["--against", "paper", "--table", "table8"], "no 'table8' in the paper", 2),
        (["--against", "paper", "--data", "mnist"], "--data mnist: the paper has nothing", 2),
        (["--figures", "x", "--json"], "--figures draws; leave out", 2),
        (["--by", "method.treshold"], "no setting method.treshold; did you mean method.thr", 2),
        (["--by", "train.epochs", "--against", "paper"], "leave one of them out", 2),
        (["--by", "train.epochs", "--figures", "x"], "--figures draws; leave out", 2),
        (["--method", "DPLL"], "no method 'DPLL'; there are concont, ", 2),
        (["merge", tmp_path / "none.json"], "no such file or folder", 1),
        (["merge", tmp_path], "holds no finished run", 1),
    ):
        shown = concont(*words)
        assert shown.returncode == code
        assert message in shown.stderr
        assert "Traceback" not in shown.stderr


def find_cells(shown):
    """All cells of tables, or values of lists, one after the other."""
    lines = shown.splitlines()
    framed = [line.split("│")[1:-1] for line in lines if line.startswith("│")]
    listed = [line.split(": ", 1)[1:] for line in lines if not line.startswith("│")]
    return [cell.strip() for cells in framed + listed for cell in cells if cell.strip()]


@pytest.mark.parametrize("columns", [40, pytest.param(60, marks=pytest.mark.long), 100])
def test_numbers_are_those_of_json_on_every_screen(folder, columns):
    words = ("--against", "paper", "--folder", folder)
    rows = json.loads(concont(*words, "--json").stdout)
    cells = find_cells(concont(*words, columns=columns).stdout)
    for name in ("paper", "ours"):
        means = [row[f"{name}_mean"] for row in rows if row[f"{name}_mean"] is not None]
        assert means
        for row in rows:
            if row[f"{name}_mean"] is not None:
                spread = row[f"{name}_std"]
                end = "" if spread is None else f"±{spread:.2f}"
                assert f"{row[f'{name}_mean']:.2f}{end}" in cells
    records = json.loads(concont("--folder", folder, "--json").stdout)
    cells = find_cells(concont("--folder", folder, columns=columns).stdout)
    for record in records:
        for cell in (f"{100 * record['accuracy_last']:.2f} %", f"{record['seconds']:.0f}"):
            assert cell in cells
        assert record["settings_hash"] in cells
    words = ("--by", "method.part_loss,optimizer.weight_decay", "--folder", folder)
    cells = find_cells(concont(*words, columns=columns).stdout)
    for row in json.loads(concont(*words, "--json").stdout):
        wanted = (f"{100 * row['accuracy_mean']:.2f}", f"{row['optimizer.weight_decay']}")
        assert all(cell in cells for cell in (*wanted, str(row["n"])))


@pytest.mark.parametrize("columns", [40, 100])
def test_what_a_record_says_of_itself_is_shown_and_never_obeyed(tmp_path, columns):
    cell = next(cell for cell in cells_of("table4") if cell.data == "cifar10")
    record = {**made_up_record(cell), "recipe": "[red]x\x1b[31m", "evaluated_on": "[b]test\x1b[1m"}
    record["environment"] = {**record["environment"], "device": "[link=http://x]y[/link]"}
    write(tmp_path / "odd.json", record)
    assert concont("merge", tmp_path / "odd.json", "--folder", tmp_path).returncode == 0
    shown = concont("--folder", tmp_path, columns=columns).stdout
    recipe = "".join(line.split("│")[2] for line in shown.splitlines() if line.startswith("│"))
    assert "[red]x\\x1b[31m" in re.sub(r"\s", "", recipe or shown)
    by = concont("--by", "train.epochs", "--folder", tmp_path, columns=columns).stdout
    assert by.startswith("accuracy in %, on [b]test\\x1b[1m\n")
    assert "\x1b" not in shown + by
