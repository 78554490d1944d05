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
def test_a_folder_that_is_no_run(tmp_path):
    done = command("evaluate", tmp_path)
    assert done.returncode == 2
    assert "holds no summary.json" in done.stderr
