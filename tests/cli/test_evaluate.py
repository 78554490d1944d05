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
