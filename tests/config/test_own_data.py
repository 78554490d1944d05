import numpy as np
import pytest
import yaml

from concont.config.own_data import STEPS, choose_recipe, complete_recipe
from concont.config.resolve import resolve
from concont.data.own_data import OwnData


@pytest.mark.parametrize(("device", "name"), [("cpu", "own-cpu"), ("cuda", "own")])
def test_the_recipe_follows_the_device(device, name):
    assert choose_recipe(OwnData(10, (8, 8, 3)), device) == name
    assert choose_recipe(OwnData(10, (8,)), device) == "features"


@pytest.mark.parametrize("rows", [10, 300, 3000, 100_000, 10_000_000])
@pytest.mark.parametrize("name", STEPS)
def test_a_run_has_about_as_many_steps_whatever_the_number_of_images(rows, name):
    settings = resolve({}, name, own=OwnData(rows, (32, 32, 3)))
    epochs, steps = settings.train.epochs, max(1, rows // settings.train.batch_size)
    assert settings.train.batch_size == {"own": 256, "own-cpu": 64, "features": 128}[name]
    assert 1 <= settings.train.evaluate_every <= epochs
    assert epochs in (1, 2000) or 0.6 < epochs * steps / STEPS[name] < 1.5


def test_large_images_come_in_smaller_batches():
    small, large = (
        complete_recipe(["own"], OwnData(5000, (n, n, 3)), {"batch_size": 256}, {})
        for n in (96, 224)
    )
    assert (small["train"]["batch_size"], large["train"]["batch_size"]) == (256, 64)
    assert "optimizer" not in small
    assert large["optimizer"] == {"lr": 0.03}
    assert large["train"]["epochs"] == 128  # of 78 steps


def test_data_of_ones_own_has_a_recipe_of_its_own_unless_one_is_named(toy_npz, tmp_path):
    settings = resolve({"data": {"source": str(toy_npz)}, "train": {"device": "cpu"}})
    assert (settings.recipe, settings.model.name) == ("own-cpu", "small")
    assert settings.train.epochs == 2000  # of one step: 40 rows
    assert settings.data.image_size is None
    own = resolve({"data": {"source": str(toy_npz)}, "train": {"epochs": 30}})
    assert (own.train.epochs, own.train.evaluate_every) == (30, 1)
    paper = resolve({"data": {"source": str(toy_npz)}}, "paper")
    assert (paper.recipe, paper.train.epochs, paper.model.name) == ("paper", 800, "resnet18")
    for method in ("sspl", "dpll", "partial"):
        found = resolve({"data": {"source": str(toy_npz)}, "method": {"name": method}})
        assert (found.recipe, found.method.name) == ("own-cpu", method)


def test_what_a_user_says_of_batches_and_lengths_decides_the_rest(toy_npz, tmp_path):
    rows = OwnData(6400, (32, 32, 3), from_files=True)
    usual = resolve({"train": {"device": "cpu"}}, own=rows)
    assert (usual.train.batch_size, usual.train.epochs) == (64, 20)
    small = resolve({"train": {"device": "cpu", "batch_size": 16}}, own=rows)
    assert (small.train.batch_size, small.train.epochs) == (16, 5)  # as many steps
    mine = tmp_path / "mine.yaml"
    mine.write_text("extends: own-cpu\noptimizer: {lr: 0.05}\ndata: {image_size: 24}\n")
    found = resolve({}, str(mine), own=rows)
    assert (found.recipe, found.optimizer.lr, found.train.epochs) == ("mine", 0.05, 20)
    assert found.data.image_size == 24
    mine.write_text("extends: own-cpu\ntrain: {epochs: 7, batch_size: 32}\n")
    assert resolve({}, str(mine), own=rows).train.epochs == 7
    assert resolve({}, str(mine), own=rows).train.evaluate_every == 1


def test_a_folder_that_is_called_as_a_recipe_is_a_folder(tmp_path, monkeypatch):
    from image_tables import make_images

    monkeypatch.chdir(tmp_path)
    make_images(tmp_path / "own", [f"{name}/{k}.png" for name in "ab" for k in range(5)])
    settings = resolve({"data": {"source": "own"}, "train": {"device": "cpu"}})
    assert (settings.recipe, settings.data.image_size) == ("own-cpu", 8)
    assert settings.data.source == str(tmp_path / "own")


def test_a_folder_of_unlabelled_images_is_used_by_every_method(tmp_path):
    from image_tables import make_images, make_table

    table = make_table(tmp_path / "photos")
    make_images(tmp_path / "more", ["x.png"], start=90)
    data = {"source": str(table)}
    more = {**data, "unlabeled_images": str(tmp_path / "more")}
    for method, alone in (("dpll", False), ("concont", True)):
        for section, used in ((data, alone), (more, True), ({**more, "unlabeled": False}, False)):
            flags = {"data": section, "method": {"name": method}, "train": {"device": "cpu"}}
            assert resolve(flags).data.unlabeled is used


def test_arrays_are_looked_at_as_a_file_is():
    images = OwnData(5000, (16, 16, 1))
    settings = resolve({"train": {"device": "cpu"}}, own=images)
    assert (settings.recipe, settings.train.epochs) == ("own-cpu", 26)
    files = OwnData(5000, (48, 48, 3), from_files=True)
    assert resolve({"train": {"device": "cpu"}}, own=files).data.image_size == 48


def test_one_part_of_a_view_changes_and_the_rest_of_it_stays(toy_npz):
    asked = ["views.strong.crop=[0.5, 1]"]
    strong = resolve({"data": {"source": str(toy_npz)}}, None, asked).views.strong
    assert (strong.crop, strong.draws, strong.cutout) == ((0.5, 1.0), 2, (0.5, 0.5))


def test_what_cannot_be_looked_at_is_told_later(tmp_path):
    (tmp_path / "broken.npz").write_bytes(b"no archive")
    np.savez(tmp_path / "flat.npz", x_train=np.zeros(3))
    for name in ("broken.npz", "flat.npz", "missing.npz"):
        settings = resolve({"data": {"source": str(tmp_path / name)}})
        assert settings.recipe == "default"


def test_the_settings_of_such_a_run_are_complete_and_read_back(toy_npz, tmp_path):
    from concont.config.resolve import read_settings, write_yaml

    settings = resolve({"data": {"source": str(toy_npz)}, "train": {"device": "cpu"}})
    (tmp_path / "config.yaml").write_text(write_yaml(settings))
    assert yaml.safe_load(write_yaml(settings))["train"]["epochs"] == 2000
    assert read_settings(tmp_path / "config.yaml") == settings
