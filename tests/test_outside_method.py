"""A method in a file outside the package: trained, resumed, recorded; and never run unasked."""

import json
from dataclasses import replace

import pytest
import torch
import yaml
from PIL import Image
from safetensors.torch import load_file

import concont
from concont.config.resolve import check, read_settings, resolve
from concont.data.sources import from_arrays
from concont.errors import Interrupted, UsageError
from concont.runs.folder import RunFolder
from concont.runs.settings import UnloadedMethod
from concont.sweep.estimate import kind_of
from concont.sweep.record import key_of, of_run, settings_in
from concont.training.prepare import prepare
from concont.training.trainers import reopen_run
from outside import CODE
from processes import concont as command


@pytest.fixture
def code(tmp_path):
    path = tmp_path / "code" / "smooth.py"
    path.parent.mkdir()
    path.write_text(CODE)
    return f"{path}:Smooth"


@pytest.fixture
def config(toy_config, code):
    return {**toy_config, "method": {"name": code, "pace": 0.8}}


def settings_of(config, **more):
    return resolve({**config, **more}, "default", code=config["method"]["name"])


def test_what_it_brings_and_what_belongs_to_the_data_reaches_it(code):
    flags = {"method": {"name": code}}
    found = resolve(flags, "svhn", code=code)
    assert (found.optimizer.lr, found.method.queue) == (0.25, 8192)
    found = resolve(flags, "digits", ["method.pace=0.5"], code=code)
    assert (found.train.batch_size, found.method.queue, found.method.pace) == (32, 1024, 0.5)
    with pytest.raises(UsageError, match="method.depth has no effect with method.mode plain"):
        resolve(flags, "digits", ["method.depth=5"], code=code)
    with pytest.raises(UsageError, match="unknown setting method.pase; did you mean pace?"):
        resolve(flags, "digits", ["method.pase=0.5"], code=code)


def test_a_run_of_it_holds_its_place_and_digest_and_its_record_no_place(
    tmp_path, config, code, toy_arrays
):
    run = concont.train({**config, "recipe": "default"}, data=toy_arrays, out=tmp_path / "run")
    plain = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())
    assert list(plain["method"]) == ["name", "digest", "pace", "queue", "mode", "depth"]
    assert plain["method"]["name"] == code
    assert isinstance(run.settings.method, UnloadedMethod)  # reading a run runs nothing
    assert run.predict_proba(toy_arrays["x_test"]).shape == (20, 2)
    assert run.summary["method"] == "smooth"

    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    for line in map(json.loads, lines):
        assert line["loss_smooth"] == line["loss"] > 0
        assert 0 <= line["moved"] <= 1
        assert line["loss_part"] is None
    record = of_run(RunFolder(tmp_path / "run"))
    assert record["settings"]["method"]["name"] == "smooth.py:Smooth"
    assert str(tmp_path) not in json.dumps(record)
    assert key_of(record) == run.summary["settings_hash"]
    kept = {"pace": 0.8, "queue": 5, "mode": "plain", "depth": 3}
    assert settings_in(record).method.values == kept


def test_it_is_known_by_its_class_its_files_name_and_its_content(tmp_path, config, code):
    known = settings_of(config).hash()
    (tmp_path / "elsewhere").mkdir()
    moved = tmp_path / "elsewhere" / "smooth.py"
    moved.write_text(CODE)
    again = {**config, "method": {**config["method"], "name": f"{moved}:Smooth"}}
    assert settings_of(again).hash() == known
    moved.write_text(CODE + "# another one\n")
    assert settings_of(again).hash() != known
    renamed = moved.rename(moved.with_name("other.py"))
    renamed.write_text(CODE)
    again["method"]["name"] = f"{renamed}:Smooth"
    assert settings_of(again).hash() != known
    stored = check(settings_of(config).as_dict())
    assert isinstance(stored.method, UnloadedMethod)
    assert stored.hash() == known
    assert kind_of(stored) == kind_of(settings_of(config))  # so its runs are timed once
    assert stored.as_dict() == settings_of(config).as_dict()


def test_it_goes_on_after_a_stop_bit_for_bit_once_its_code_is_named(
    tmp_path, config, code, toy_arrays, caplog
):
    data = from_arrays(toy_arrays)
    concont.train({**config, "recipe": "default"}, data=toy_arrays, out=tmp_path / "whole")
    own = settings_of(config)
    own = replace(own, data=replace(own.data, source="", root=None))
    job = prepare(own, RunFolder(tmp_path / "run"), data)
    with pytest.raises(Interrupted, match=f"--resume .*run --method {code}$"):
        for _ in job.execute(stop=lambda: job.state.step == 3):
            pass
    with pytest.raises(UsageError, match="smooth.py:Smooth is code of your own, .* --method"):
        reopen_run(job.folder, data)
    with pytest.raises(UsageError, match="trained with method .*Smooth, not with x.py:Other"):
        reopen_run(job.folder, data, method="x.py:Other")
    for _ in reopen_run(job.folder, data, method=code).execute():
        pass
    found, expected = (load_file(tmp_path / n / "model.safetensors") for n in ("run", "whole"))
    assert [name for name in expected if not torch.equal(found[name], expected[name])] == []
    assert not any("changed" in message for message in caplog.messages)
    (tmp_path / "code" / "smooth.py").write_text(CODE + "\n")
    check(own.as_dict(), code)
    assert any("has changed since" in message for message in caplog.messages)


@pytest.mark.slow
def test_the_command_trains_resumes_benches_and_evaluates_it(tmp_path, config, toy_npz, code):
    recipe = tmp_path / "toy.yaml"
    recipe.write_text(yaml.safe_dump({k: v for k, v in config.items() if k != "method"}))
    own = ("--method", "code/smooth.py:Smooth")
    words = ("--data", toy_npz, "--recipe", recipe, "--set", "method.pace=0.8", "--out", "run")
    done = command("train", *words, *own, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "smooth 0." in done.stdout
    assert "moved 0." in done.stdout
    assert command("evaluate", "run", cwd=tmp_path).returncode == 0

    (tmp_path / "run" / "summary.json").unlink()  # as if it had been killed before its end
    untold = command("train", "--resume", "run", cwd=tmp_path)
    assert untold.returncode == 2
    assert untold.stderr.count("\n") == 1
    assert f"--method {code}" in untold.stderr
    told = command("train", "--resume", "run", *own, cwd=tmp_path)
    assert told.returncode == 0, told.stderr

    assert command("results", "merge", "run", "--folder", "sweep", cwd=tmp_path).returncode == 0
    shown = command("results", "--folder", "sweep", "--method", "smooth", "--json", cwd=tmp_path)
    assert [row["method"] for row in json.loads(shown.stdout)] == ["smooth"]
    none = command("results", "--folder", "sweep", "--method", "smoth", cwd=tmp_path)
    assert (none.returncode, "there are concont" in none.stderr) == (2, True)

    again = ("train", "--config", "run/config.yaml", "--out", "again")
    assert command(*again, cwd=tmp_path).returncode == 2
    done = command(*again, *own, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found, expected = (load_file(tmp_path / n / "model.safetensors") for n in ("again", "run"))
    assert all(torch.equal(found[name], expected[name]) for name in expected)

    timed = ("bench", "--images", "40", "--image-size", "8", "--steps", "1", "--no-plain", "--json")
    done = command(*timed, *own, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["method"] == "smooth"
    both = command(*timed, "--methods", f"partial,{code}", cwd=tmp_path)
    assert [row["method"] for row in json.loads(both.stdout)] == ["partial", "smooth"]


@pytest.mark.long
@pytest.mark.slow
def test_a_sweep_runs_it_once_its_code_is_named(tmp_path, config, toy_npz):
    base = {**config, "data": {**config["data"], "source": str(toy_npz)}, "method": {}}
    base["train"]["epochs"] = 1
    sweep = {"base": base, "axes": {"method.pace": [0.5, 0.9]}}
    (tmp_path / "grid.yaml").write_text(yaml.safe_dump(sweep))
    words = ("sweep", "grid.yaml", "--folder", "grid")
    done = command(*words, "--method", "code/smooth.py:Smooth", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = command("results", "--folder", "grid", "--by", "method.pace", "--json", cwd=tmp_path)
    assert [(row["method.pace"], row["n"]) for row in json.loads(found.stdout)] == [
        (0.5, 1),
        (0.9, 1),
    ]
    sweep["base"]["method"]["name"] = "code/smooth.py:Smooth"  # a file alone may not name code
    (tmp_path / "grid.yaml").write_text(yaml.safe_dump(sweep))
    untold = command(*words, cwd=tmp_path)
    assert untold.returncode == 2
    assert "code of your own" in untold.stderr


PLANTED = """
from pathlib import Path
Path({marker!r}).write_text("I ran")
"""


@pytest.fixture
def planted(tmp_path, toy_npz, toy_config):
    """A finished run whose folder names code that nobody asked to run, and what would betray it."""
    marker = tmp_path / "marker"
    evil = tmp_path / "evil.py"
    evil.write_text(PLANTED.format(marker=str(marker)) + CODE)
    config = {**toy_config, "data": {**toy_config["data"], "source": str(toy_npz)}}
    config["method"] = {"name": "partial"}
    concont.train(config, out=tmp_path / "run")
    path = tmp_path / "run" / "config.yaml"
    plain = yaml.safe_load(path.read_text())
    plain["method"] = {"name": f"{evil}:Smooth", "pace": 0.5}
    path.write_text(yaml.safe_dump(plain))
    return marker


@pytest.mark.slow
def test_no_code_that_a_run_folder_or_record_names_is_ever_run(planted, tmp_path, toy_arrays):
    image = tmp_path / "image.png"
    Image.fromarray(toy_arrays["x_test"][0]).save(image)
    run, config = tmp_path / "run", tmp_path / "run" / "config.yaml"
    (run / "checksums.json").unlink()  # whoever planted the code could have mended them, too
    assert concont.load(run).predict(toy_arrays["x_test"]).shape == (20,)
    assert command("evaluate", run).returncode == 0
    assert command("predict", run, image).returncode == 0
    merged = command("results", "merge", run, "--folder", tmp_path / "sweep")
    assert merged.returncode == 0, merged.stderr
    assert command("results", "--folder", tmp_path / "sweep").returncode == 0
    record = of_run(RunFolder(run))
    record["settings"]["method"]["name"] = str(tmp_path / "evil.py") + ":Smooth"
    assert key_of(record)
    assert isinstance(settings_in(record).method, UnloadedMethod)
    bench = ("bench", "--run", run)
    assert command(*bench).returncode == 0
    (run / "summary.json").unlink()
    for words in (
        ("--resume", run),
        ("--config", config, "--out", tmp_path / "two"),
        ("--recipe", config, "--out", tmp_path / "three"),
        ("--recipe", config, "--set", "method.name=" + str(tmp_path / "evil.py") + ":Smooth"),
    ):
        done = command("train", *words, cwd=tmp_path)
        assert done.returncode == 2
        assert "code of your own" in done.stderr
        assert done.stderr.count("\n") == 1
    assert not planted.exists()
    with pytest.raises(UsageError, match="code of your own"):
        concont.train(str(config), out=tmp_path / "four")
    assert not planted.exists()
    read_settings(config, str(tmp_path / "evil.py") + ":Smooth")  # asked for: so this test can fail
    assert planted.exists()
