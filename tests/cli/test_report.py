import pytest

import concont
from made_runs import make_rows, make_run
from processes import concont as command


@pytest.fixture
def run(tmp_path, toy_npz, toy_config):
    toy_config["data"]["source"] = str(toy_npz)
    return concont.train(toy_config, out=tmp_path / "run")


@pytest.mark.slow
def test_a_page_is_written_and_never_written_over_by_accident(run, tmp_path):
    done = command("report", run.path, "-o", "page.html", "--review", "5", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("page.html: 1 run, 1.")
    html = (tmp_path / "page.html").read_text()
    accuracy = run.summary.accuracy_last
    assert f"{100 * accuracy:.2f}\u00a0%" in html
    assert html.count('<li data-words="') == 5
    again = command("report", run.path, "-o", "page.html", cwd=tmp_path)
    assert again.returncode == 2
    assert again.stderr == ("error: page.html is there already; --overwrite replaces it\n")
    none = command("report", "nosuch", "-o", "page.html", cwd=tmp_path)
    assert none.stderr == "error: nosuch: no such run folder\n"
    over = command("report", run.path, "-o", "page.html", "--overwrite", cwd=tmp_path)
    assert over.returncode == 0, over.stderr


@pytest.mark.slow
def test_runs_are_compared_whatever_state_they_are_in(run, tmp_path):
    make_run(tmp_path / "begun", rows=make_rows(1), finished=False)
    make_run(tmp_path / "gone")  # finished, and without weights
    done = command("report", "run", "begun", "gone", "-o", "all.html", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "all.html: 3 runs, " in done.stdout
    assert "begun: No map, review list or confusions: the run has not ended" in done.stderr
    assert "gone: Nothing that needs the network: " in done.stderr
    html = (tmp_path / "all.html").read_text()
    assert html.index("Settings that differ") < html.index("What came of them")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nosuch"], "error: nosuch: no such run folder\n"),
        (["."], "error: . holds no config.yaml, so it is not a run that can be used\n"),
        (["made", "made"], "error: the same run is given twice\n"),
        (["made", "-o", "x.txt"], "error: x.txt: its name must end in .html or .htm\n"),
        (["made", "-o", "no/x.html"], "error: no/x.html: there is no folder no\n"),
    ],
)
def test_a_mistake_is_told_in_a_line(words, message, tmp_path):
    make_run(tmp_path / "made")
    done = command("report", *words, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, message)
    assert not (tmp_path / "report.html").exists()
