from dataclasses import replace

import pytest

import concont
from concont.config.resolve import read_settings, resolve, write_yaml
from concont.config.start import resolve_start
from concont.errors import UsageError
from concont.runs.folder import RunFolder
from image_tables import make_table


@pytest.fixture
def first(tmp_path, toy_config, toy_npz):
    """A finished run whose data is a file."""
    toy_config["data"]["source"] = str(toy_npz)
    toy_config["train"]["epochs"] = 1
    return concont.train(toy_config, out=tmp_path / "first").path


def test_the_runs_settings_are_the_base_and_what_is_said_lies_over_them(first):
    base = read_settings(first / "config.yaml")
    found = resolve_start(first, {"train": {"epochs": 5}}, ["optimizer.lr=0.5"])
    assert found.model.start == str(first / "model.safetensors")
    assert len(found.model.start_digest) == 16
    assert (found.train.epochs, found.optimizer.lr, found.recipe) == (5, 0.5, base.recipe)
    undone = replace(found, model=base.model, train=base.train, optimizer=base.optimizer)
    assert undone == base


def test_another_method_brings_its_own_settings(first):
    found = resolve_start(first, {"method": {"name": "partial"}})
    assert found.method.name == "partial"
    assert found.model.start is not None


def test_a_start_of_the_run_itself_is_replaced(first, tmp_path, toy_npz):
    settings = resolve_start(first, {})
    second = concont.train(settings, out=tmp_path / "second").path
    found = resolve_start(second, {})
    assert found.model.start == str(second / "model.safetensors")
    assert found.model.start_digest != settings.model.start_digest


def write_base(first, **data):
    """The same run, as if its data had been this."""
    base = read_settings(first / "config.yaml")
    changed = replace(base, data=replace(base.data, **data))
    (first / "config.yaml").write_text(write_yaml(changed))
    return changed.data


def test_a_new_source_is_read_without_the_files_of_the_old_one(first, tmp_path, toy_npz):
    table = make_table(tmp_path / "photos")
    other = table.rename(tmp_path / "other.csv")
    photos, votes = str(tmp_path / "photos"), str(tmp_path / "v.csv")
    old = {"source": photos, "votes": votes, "min_votes": 2, "image_size": 16, "fit": "pad"}
    write_base(first, **old, seed=7)
    same = resolve_start(first, {"train": {"epochs": 2}}).data
    assert (same.votes, same.min_votes, same.image_size, same.seed) == (votes, 2, 16, 7)
    given = {"source": str(other), "images": photos}
    found = resolve_start(first, {"data": given}).data
    assert (found.votes, found.min_votes, found.candidates, found.seed) == (None, 1, None, 7)
    assert (found.source, found.images) == (str(other), photos)
    assert (found.image_size, found.fit) == (8, "pad")  # what the run has learned from
    arrays = resolve_start(first, {"data": {"source": str(toy_npz)}}).data
    assert (arrays.image_size, arrays.fit, arrays.images) == (None, "crop", None)


def test_a_table_in_the_place_of_another_keeps_the_folder_of_images(first, tmp_path):
    photos = tmp_path / "photos"
    table = make_table(photos).rename(tmp_path / "other.csv")
    write_base(first, source=str(tmp_path / "old.csv"), images=str(photos), labeled=None)
    found = resolve_start(first, {}, [f"data.source={table}"]).data
    assert (found.source, found.images) == (str(table), str(photos))
    assert resolve_start(first, {"data": {"source": "digits"}}).data.images is None


def test_what_is_no_start_is_refused(first, tmp_path, toy_config):
    for path, message in ((tmp_path / "none", "no such run folder"), (tmp_path, "no config.yaml")):
        with pytest.raises(UsageError, match=message):
            resolve_start(path, {})
    with pytest.raises(UsageError, match="sspl trains no network: leave out --from"):
        resolve_start(first, {"method": {"name": "sspl"}})
    (first / "summary.json").unlink()
    with pytest.raises(UsageError, match="is not finished; first go on with it: --resume"):
        resolve_start(first, {})
    plain = resolve({"data": {"source": "digits"}, "method": {"name": "sspl"}})
    RunFolder(first).write_text("config.yaml", write_yaml(plain))
    with pytest.raises(UsageError, match="is of sspl, which trains no network to start from"):
        resolve_start(first, {})


def test_weights_that_the_run_started_from_are_forgotten(first):
    base = read_settings(first / "config.yaml")
    timm = replace(base.model, name="timm:test_resnet", weights="x.safetensors", weights_digest="x")
    (first / "config.yaml").write_text(write_yaml(replace(base, model=timm)))
    found = resolve_start(first, {}).model
    assert (found.weights, found.weights_digest) == (None, None)
    assert found.name == "timm:test_resnet"
    with pytest.raises(UsageError, match=r"model\.weights has no effect with model\.start"):
        resolve_start(first, {"model": {"weights": "pretrained"}})
