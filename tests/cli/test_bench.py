import json
import re

import pytest

import concont
from concont.cli.app import app
from concont.cli.bench import _print_scaling as print_scaling
from concont.cli.bench import _print_step as print_step
from concont.errors import UsageError
from image_tables import make_table
from processes import concont as command
from refusals import run_here

SMALL = ("--device", "cpu", "--image-size", "8", "--images", "64", "--batch", "16")
SMALL += ("--steps", "1", "--set", "model.width=4")


@pytest.mark.slow
def test_json_holds_the_figures_and_none_of_a_way_left_out():
    done = command("bench", *SMALL, "--json", "--no-plain")
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert (figures["device"], figures["batch"], figures["plain_step_ms"]) == ("cpu", 16, None)
    assert figures["busy"] is None


@pytest.mark.slow
def test_of_given_images_it_says_how_busy_the_device_is(toy_npz, capsys):
    words = ["bench", "--data", str(toy_npz), "--device", "cpu", "--batch", "16"]
    app(words, standalone_mode=False)
    text = capsys.readouterr().out
    assert "busy " in text
    app([*words, "--json"], standalone_mode=False)
    figures = json.loads(capsys.readouterr().out)
    assert 0 < figures["busy"] <= 1
    assert (figures["image_size"], figures["batch"]) == (8, 16)


def test_a_table_is_timed_at_the_size_that_is_asked_for(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("CONCONT_CACHE", str(tmp_path / "cache"))
    table = make_table(tmp_path / "photos")
    words = ["--data", str(table), "--image-size", "12", "--batch", "4", "--device", "cpu"]
    app(["bench", *words, "--json"], standalone_mode=False)
    figures = json.loads(capsys.readouterr().out)
    assert (figures["image_size"], figures["batch"]) == (12, 4)
    assert 0 < figures["busy"] <= 1


@pytest.mark.slow
@pytest.mark.long
def test_a_table_sets_the_step_beside_the_plain_way():
    done = command("bench", *SMALL)
    assert done.returncode == 0, done.stderr
    assert "concont, small, batch 16, 8 x 8, cpu" in done.stdout
    assert "plain, float32" in done.stdout
    assert "faster than the plain way" in done.stdout


@pytest.mark.slow
@pytest.mark.long
def test_the_views_of_a_batch_come_faster_than_image_by_image():
    done = command("bench", "--device", "cpu", "--json", "--set", "model.width=4", "--steps", "3")
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert figures["plain_views_ms"] >= 1.5 * figures["views_ms"]


@pytest.mark.long
@pytest.mark.slow
def test_one_table_holds_the_steps_of_several_methods():
    done = command("bench", *SMALL, "--methods", "pico,lws")
    assert done.returncode == 0, done.stderr
    for columns in (30, 60):
        narrow = command("bench", *SMALL, "--methods", "pico", columns=columns).stdout
        assert re.search(r"[│:] +16( |$)", narrow, re.MULTILINE)
        assert len(re.findall(r"\d+\.\d\d(?= │|$)", narrow, re.MULTILINE)) == 3
    rows = [line.replace("│", " ").split() for line in done.stdout.splitlines()]
    assert [row[:2] for row in rows if row and row[0] in ("pico", "lws")] == [
        ["pico", "16"],
        ["lws", "16"],
    ]


@pytest.mark.slow
def test_a_run_says_what_its_time_was_spent_on(tmp_path, toy_npz, toy_config, capsys):
    toy_config["data"]["source"] = str(toy_npz)
    concont.train(toy_config, out=tmp_path / "run")
    done = command("bench", "--run", tmp_path / "run", "--passing", "0.01")
    assert done.returncode == 0, done.stderr
    assert "first step" in done.stdout
    assert "1.00 % first passed after" in done.stdout
    capsys.readouterr()
    app(["bench", "--run", str(tmp_path / "run"), "--json"], standalone_mode=False)
    figures = json.loads(capsys.readouterr().out)
    assert sum(figures["seconds_by"].values()) == pytest.approx(figures["seconds"])
    assert all(value >= 0 for value in figures["seconds_by"].values())


@pytest.mark.parametrize(
    "words",
    [("--images", "-5"), ("--image-size", "0"), ("--steps", "0")],
)
def test_numbers_out_of_range_are_refused(words, capsys):
    refused = run_here(capsys, "bench", *words)
    assert refused.returncode == 2
    assert "Traceback" not in refused.stderr
    assert f"Invalid value for '{words[0]}'" in refused.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--method", "sspl"), "sspl trains no network"),
        (("--methods", "pico, sspl"), "no method 'sspl'; there are concont, dpll, "),
        (("--methods", "pico", "--method", "lws"), "leave out --method, "),
        (("--data", "x.npz", "--scaling"), "--data stands alone"),
        (("--data", "x.npz"), "x.npz: no such file"),
        (("--methods", "pico", "--scaling"), "leave out --method, --scaling"),
        (("--ranks", "2", "--data", "x.npz"), "--ranks goes with --scaling or alone"),
        (("--methods", "pico", "--run", "nowhere"), "leave out --method, --scaling and --run"),
    ],
)
def test_methods_that_cannot_be_timed_are_refused_in_one_line(words, said):
    with pytest.raises(UsageError) as caught:
        app(["bench", *words], standalone_mode=False)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_an_unknown_method_ends_the_command_with_a_line_and_a_code():
    done = command("bench", "--method", "sspl")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1


def test_a_folder_that_is_no_run_is_refused(tmp_path, capsys):
    refused = run_here(capsys, "bench", "--run", tmp_path)
    assert refused.returncode == 2
    assert "no finished run" in refused.stderr


STEP = {
    **{"image_size": 32, "batch": 64, "method": "concont", "network": "[red]x", "device": "a\x1b"},
    **{"tflops": 1.5, "step_ms": 113.25, "views_ms": 7.75, "matmul_tflops": 12.0},
    **{"plain_flops": 2e11, "plain_views_ms": 58.5, "plain_float32_step_ms": 1234.56},
    **{"plain_step_ms": 1234.56, "plain_workers": 2, "epoch_s": 88.5, "first_step_s": 3.0},
    **{"warm_cache": None, "step_memory_gb": None, "busy": None},
}
ROW = {"images": 1_200_000, "image_size": 224, "batch": 256, "on_disk": True, "streamed": True}
SCALING = {"rows": [{**ROW, "step_ms": 1234.56, "us_per_image": 987.6}]}


@pytest.mark.parametrize("columns", [25, 40, 60, 100])
def test_figures_are_whole_and_names_plain_on_every_screen(columns, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", str(columns))
    print_step(STEP)
    shown = capsys.readouterr().out
    for cell in ("113.25", "1234.56", "565", "7.75", "58.50"):
        assert re.search(rf"[│:] +{cell}( |$)", shown, re.MULTILINE), cell
    assert shown.startswith("concont, [red]x, batch 64, 32 x 32, a\\x1b\n")
    print_scaling(SCALING)
    shown = capsys.readouterr().out
    for cell in ("1,200,000", "224", "256", "1234.56", "987.6"):
        assert re.search(rf"[│:] +{cell}( |$)", shown, re.MULTILINE), cell
