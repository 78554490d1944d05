import json
import re

import numpy as np
import pytest

import concont
from processes import concont as command


@pytest.mark.slow
def test_the_tables_say_what_the_figures_say(tmp_path, toy_npz, toy_config):
    toy_config["data"]["source"] = str(toy_npz)
    run = concont.train(toy_config, out=tmp_path / "run")
    figures = run.evaluate()
    done = command("evaluate", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    assert f"accuracy {100 * figures['accuracy']:.2f} % on 20 test images" in done.stdout
    lines = [line.replace("│", " ").split() for line in done.stdout.splitlines()]
    for name, counts in zip("01", figures["confusion"], strict=True):
        own = figures["per_class"][name]
        assert [name, "10", f"{100 * own:.2f}", "%"] in lines
        assert [name, *(str(n) if n else "." for n in counts)] in lines
    assert np.sum(figures["confusion"]) == 20


@pytest.mark.slow
def test_without_true_labels_the_commands_measure_on_held_out_sets(tmp_path, toy_arrays):
    sets = np.eye(3, dtype=bool)[toy_arrays["y_train"]]
    sets[::2, 2] = True
    np.savez(tmp_path / "sets.npz", x_train=toy_arrays["x_train"], candidates=sets)
    words = ("train", "--data", tmp_path / "sets.npz", "--epochs", 2, "--set", "data.holdout=0.25")
    done = command(*words, "--device", "cpu", "--out", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    run = concont.load(tmp_path / "run")
    figures, problem = run.evaluate(), run.read_problem()
    probs = run.predict_proba(problem.test_images)
    on_sets = (probs * problem.test_candidates).sum(axis=1).mean()
    assert figures["probability_on_sets"] == pytest.approx(on_sets)
    assert figures == {
        **{"on": "sets", "n": 10},
        **{name: run.summary[name] for name in ("probability_on_sets", "share_in_sets")},
    }
    inside, mass = (
        f"{100 * figures[name]:.2f} %" for name in ("share_in_sets", "probability_on_sets")
    )
    assert f"{inside} of the labels lie in their held-out sets, {mass} of the prob" in done.stdout
    again = command("evaluate", tmp_path / "run")
    assert f"{inside} of the labels of 10 held-out images lie in their sets, {mass}" in again.stdout
    line = json.loads((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()[-1])
    assert line["accuracy"] is None
    assert line["share_in_sets"] == figures["share_in_sets"]
    for words in (("resolve", "-o", "labels.csv"), ("report", "-o", "page.html")):
        name, *more = words
        done = command(name, tmp_path / "run", *more, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    page = (tmp_path / "page.html").read_text()
    assert "Labels in their sets" in page


@pytest.fixture
def odd(tmp_path, toy_arrays, toy_config):
    """A run on classes of odd names, with 340 images to measure on."""
    toy_config["train"]["epochs"] = 1
    names = np.array(["[red]x", "\x1b[31mx", "[link=http://x]y[/link]"])
    y_test = np.arange(340) % 3
    x_test = toy_arrays["x_test"][np.arange(340) % 20]
    arrays = {**toy_arrays, "x_test": x_test, "y_test": y_test, "classes": names}
    arrays["y_train"] = np.arange(40) % 3
    np.savez(tmp_path / "odd.npz", **arrays)
    toy_config["data"]["source"] = str(tmp_path / "odd.npz")
    return concont.train(toy_config, out=tmp_path / "run").path


@pytest.mark.slow
@pytest.mark.parametrize("columns", [20, 40, 60, 100])
def test_numbers_are_those_of_json_and_names_are_plain_on_every_screen(odd, columns):
    figures = json.loads(command("evaluate", odd, "--json").stdout)
    shown = command("evaluate", odd, columns=columns).stdout
    assert "\x1b" not in shown
    head, classes, confusion = re.split("Accuracy of each class|Confusion: .*one\n", shown)
    assert f"{100 * figures['accuracy']:.2f} % on 340 test images" in head
    for own, counts in zip(figures["per_class"].values(), figures["confusion"], strict=True):
        for cell in (str(sum(counts)), f"{100 * own:.2f} %"):
            assert re.search(rf"(│|:) +{cell}( |$)", classes, re.MULTILINE)
    found = [int(n) for n in re.findall(r"(?:│|:) +(\d+)(?= |$)", confusion, re.MULTILINE)]
    assert found == [n for counts in figures["confusion"] for n in counts if n]
    whole = re.sub(r"\s|[│┃]", "", shown)
    if columns in (20, 100):
        assert all(name in whole for name in ("[red]x", "\\x1b[31mx", "[link=http://x]y[/link]"))


@pytest.mark.slow
def test_a_folder_that_is_no_run(tmp_path):
    done = command("evaluate", tmp_path)
    assert done.returncode == 2
    assert "holds no summary.json" in done.stderr
