import json
from dataclasses import replace

import numpy as np
import pytest

import concont
from concont.config.changes import find_changes, read_size
from concont.config.resolve import read_settings
from concont.report.comparison import list_changes
from image_tables import make_table
from made_runs import make_run

TINY = {
    "model": {"name": "small", "hidden": 8, "embedding": 8},
    "method": {"queue": 0},
    "train": {"device": "cpu", "epochs": 1},
}


def changes_of(path):
    return find_changes(path, read_settings(path / "config.yaml"))


def test_what_the_user_chose_stands_beside_the_recipes_value(tmp_path):
    path = make_run(tmp_path / "run", epochs=7, method={"threshold": 0.7})
    what, changes = changes_of(path)
    assert what == "the recipe digits"
    assert changes["train.epochs"][0] == 7
    assert changes["method.threshold"][0] == 0.7
    assert set(changes) == {"train.epochs", "method.threshold"}
    table = list_changes(what, changes)
    assert [row[0] for row in table.rows] == list(changes)


def test_what_the_recipe_makes_of_own_data_is_no_choice_of_the_user(tmp_path, toy_arrays):
    own = {name: toy_arrays[name] for name in ("x_train", "y_train")}
    said = {**TINY, "data": {"labeled": 0.5, "holdout": 0.25}}
    settings = concont.train(said, data=own, out=tmp_path / "run").settings
    assert settings.recipe in ("own", "own-cpu")
    what, changes = changes_of(tmp_path / "run")
    assert what == f"the recipe {settings.recipe}"
    told = {"data.labeled", "data.holdout", "train.epochs", "method.queue"}
    assert set(changes) - {"model.name", "model.hidden", "model.embedding"} == told
    _, usual = changes["train.epochs"]
    assert usual > 100  # so many for so few rows


def test_what_follows_from_a_choice_is_none(tmp_path, toy_arrays):
    """The recipe evaluates so many times, however many epochs a user asks for."""
    path = tmp_path / "run"
    said = {**TINY, "train": {"device": "cpu", "epochs": 40, "batch_size": 8}}
    run = concont.train(said, data=toy_arrays, out=path)
    assert run.settings.train.evaluate_every == 2
    _, changes = changes_of(path)
    assert {name for name in changes if name.startswith("train.")} == {
        "train.epochs",
        "train.batch_size",
    }


def test_image_files_have_the_size_that_is_in_the_record(tmp_path):
    table = make_table(tmp_path / "photos")
    concont.train({**TINY, "data": {"source": str(table)}}, out=tmp_path / "run")
    assert read_size(tmp_path / "run").from_files
    _, changes = changes_of(tmp_path / "run")
    assert not [name for name in changes if name.startswith("data.")]


def test_a_method_without_epochs_has_no_settings_of_a_training(tmp_path, toy_arrays, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    said = {"method": {"name": "sspl", "k": 3}}
    concont.train(said, data=toy_arrays, out=tmp_path / "run")
    assert set(changes_of(tmp_path / "run")[1]) == {"method.k"}


def test_a_method_without_epochs_takes_its_size_from_the_data_too(tmp_path):
    path = make_run(tmp_path / "run", method={"name": "sspl"})
    settings = read_settings(path / "config.yaml")
    data = replace(settings.data, source="t.csv", image_size=8)
    own = replace(settings, data=data, recipe="own-cpu")
    record = json.loads((path / "data.json").read_text())
    (path / "data.json").write_text(json.dumps({**record, "fit": "crop"}))
    assert "data.image_size" not in find_changes(path, own)[1]


def test_a_run_of_a_recipe_alone_differs_in_nothing(tmp_path):
    path = make_run(tmp_path / "run")
    settings = read_settings(path / "config.yaml")
    _, changes = changes_of(path)
    assert set(changes) == {"train.epochs"}
    assert changes["train.epochs"] == (settings.train.epochs, changes["train.epochs"][1])


@pytest.mark.parametrize("recipe", ["mine", "mine.yaml"])
def test_a_recipe_that_is_gone_is_replaced_by_the_defaults(tmp_path, recipe):
    path = make_run(tmp_path / "run")
    config = path / "config.yaml"
    config.write_text(config.read_text().replace("recipe: digits", f"recipe: {recipe}"))
    what, changes = changes_of(path)
    assert what == "the built-in defaults"
    assert changes["train.epochs"] == (4, 800)


def test_a_run_of_code_of_ones_own_is_compared_without_running_it(tmp_path):
    path = make_run(tmp_path / "run") / "config.yaml"
    text = path.read_text().replace("name: concont", "name: /nowhere/mine.py:Mine")
    path.write_text(text)
    what, changes = changes_of(path.parent)
    assert what == "the built-in defaults"
    assert "train.epochs" in changes
    assert not [name for name in changes if name.startswith("method.")]


def test_all_rows_of_the_data_count_or_those_that_are_known(tmp_path):
    path = make_run(tmp_path / "run")
    assert read_size(path).rows == 300
    assert read_size(tmp_path) is None
    data = json.loads((path / "data.json").read_text())
    (path / "data.json").write_text(json.dumps({**data, "fit": "crop"}))
    assert read_size(path).from_files
    assert np.prod(read_size(path).shape) == 64
