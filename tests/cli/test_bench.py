import json

import pytest

import concont
from concont.cli.app import app
from concont.errors import UsageError
from processes import concont as command

SMALL = [
    "--device",
    "cpu",
    "--image-size",
    "16",
    "--images",
    "200",
    "--batch",
    "16",
    "--steps",
    "2",
]


@pytest.mark.slow
def test_the_figures_as_json():
    done = command("bench", *SMALL, "--json", "--no-plain")
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert (figures["device"], figures["batch"], figures["plain_step_ms"]) == ("cpu", 16, None)


@pytest.mark.slow
@pytest.mark.long
def test_the_figures_as_a_table():
    done = command("bench", *SMALL, "--set", "model.width=8")
    assert done.returncode == 0, done.stderr
    assert "concont, small, batch 16, 16 x 16, cpu" in done.stdout
    assert "plain, float32" in done.stdout
    assert "faster than the plain way" in done.stdout


@pytest.mark.slow
@pytest.mark.long
def test_the_views_of_a_batch_come_faster_than_image_by_image():
    done = command("bench", "--device", "cpu", "--json", "--set", "model.width=4", "--steps", "3")
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert figures["plain_views_ms"] >= 1.5 * figures["views_ms"]


@pytest.mark.slow
def test_the_steps_of_several_methods_in_one_table():
    done = command("bench", *SMALL, "--methods", "pico,lws", "--set", "model.width=4")
    assert done.returncode == 0, done.stderr
    rows = [line.replace("│", " ").split() for line in done.stdout.splitlines()]
    assert [row[:2] for row in rows if row and row[0] in ("pico", "lws")] == [
        ["pico", "16"],
        ["lws", "16"],
    ]


@pytest.mark.slow
def test_where_the_time_of_a_run_went(tmp_path, toy_npz, toy_config):
    toy_config["data"]["source"] = str(toy_npz)
    concont.train(toy_config, out=tmp_path / "run")
    done = command("bench", "--run", tmp_path / "run", "--passing", "0.01")
    assert done.returncode == 0, done.stderr
    assert "first step" in done.stdout
    assert "1.00 % first passed after" in done.stdout
    figures = json.loads(command("bench", "--run", tmp_path / "run", "--json").stdout)
    assert sum(figures["seconds_by"].values()) == pytest.approx(figures["seconds"])
    assert all(value >= 0 for value in figures["seconds_by"].values())


@pytest.mark.parametrize(
    "words",
    [("--images", "-5"), ("--image-size", "0"), ("--steps", "0")],
)
def test_wrong_use_is_refused_in_words(words):
    done = command("bench", *words)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--method", "sspl"), "sspl trains no network"),
        (("--methods", "pico, sspl"), "no method 'sspl'; there are concont, dpll, "),
        (("--methods", "pico", "--method", "lws"), "leave out --method, "),
        (("--methods", "pico", "--scaling"), "leave out --method, --scaling"),
        (("--methods", "pico", "--run", "nowhere"), "leave out --method, --scaling and --run"),
    ],
)
def test_methods_are_refused_in_one_line(words, said):
    with pytest.raises(UsageError) as caught:
        app(["bench", *words], standalone_mode=False)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_an_unknown_method_ends_the_command_with_a_line_and_a_code():
    done = command("bench", "--method", "sspl")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.slow
def test_a_folder_that_is_no_run_is_refused(tmp_path):
    done = command("bench", "--run", tmp_path)
    assert done.returncode == 2
    assert "no finished run" in done.stderr
