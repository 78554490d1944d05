"""The scripts in examples/ run as they stand, are short, and print what they promise."""

import re
import runpy
from pathlib import Path

import pytest

from processes import concont

EXAMPLES = Path(__file__).parent.parent / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*.py"))


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Runs a script in an empty folder; gives its names, and the figures that it prints."""
    monkeypatch.chdir(tmp_path)

    def run(name):
        names = runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        assert list(tmp_path.iterdir()) == []  # nothing is left behind
        return names, [float(text) for text in re.findall(r"([\d.]+) %", capsys.readouterr().out)]

    return run


def test_there_are_five_and_the_readme_leads_to_them():
    assert len(SCRIPTS) == 5
    assert "](examples)" in (EXAMPLES.parent / "README.md").read_text("utf-8")


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_a_script_is_short_and_says_what_it_shows(path):
    text = path.read_text("utf-8")
    assert len(text.splitlines()) <= 80
    assert text.startswith('"""')


@pytest.mark.slow
def test_a_loss_alone(run):
    names, (accuracy,) = run("loss_alone.py")
    assert 3.4 < names["candidates"].sum(dim=1).double().mean() < 4.0
    assert accuracy > 85


@pytest.mark.slow
def test_the_controller_on_another_method(run):
    names, (precision, other, accuracy) = run("controller_on_fixmatch.py")
    assert precision > 95 > 90 > other  # its confidence is worth something
    assert accuracy > 75
    assert 0.3 < names["confident"].double().mean() < 0.95
    assert names["thresholds"].values.unique().numel() > 1  # they have moved apart


@pytest.mark.slow
def test_a_network_of_your_own(run):
    names, (accuracy, right) = run("own_network.py")
    assert accuracy > 60
    assert right > accuracy + 5
    sums = names["probabilities"].sum(axis=1)
    assert abs(sums - 1).max() < 1e-5
    before = names["run"].predict_proba(names["images"])
    assert (before == names["probabilities"]).all()  # what was loaded is what was trained


@pytest.mark.slow
def test_a_method_of_your_own(run):
    _, (equal, mixed) = run("own_method.py")
    assert mixed > equal > 70


@pytest.mark.slow
def test_a_method_of_your_own_from_the_shell(tmp_path):
    method = f"{EXAMPLES / 'own_method.py'}:Softened"
    words = ("--data", "digits", "--epochs", 2, "--set", "method.trust=0.7", "--device", "cpu")
    done = concont("train", *words, "--method", method, "--out", "run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "trust: 0.7" in (tmp_path / "run" / "config.yaml").read_text("utf-8")


@pytest.mark.slow
def test_candidate_sets_from_votes(run):
    names, (majority, resolved, unseen) = run("votes.py")
    assert 60 < majority < 85
    assert resolved > majority + 10
    assert unseen > 85
    assert names["candidates"][: names["n_voted"]].sum(axis=1).max() == 3
