"""Recipes by name and file, and what they extend; what a caller does to one stays the caller's."""

import pytest

from concont.config.recipe_files import read_recipe, read_rows, recipe_names, row_names
from concont.config.yaml_text import read_yaml
from concont.errors import UsageError


def test_what_ships_is_found_by_name():
    assert {"paper", "cifar10", "cifar100", "svhn", "digits", "default"} <= set(recipe_names())
    assert [recipe.name for recipe in read_recipe("cifar10")] == ["paper", "cifar10"]
    assert read_recipe("cifar10")[0].content["train"]["epochs"] == 800
    assert row_names() == list(read_rows())


def test_a_recipe_is_the_callers_own():
    read_recipe("paper")[0].content["train"]["epochs"] = 1
    assert read_recipe("paper")[0].content["train"]["epochs"] == 800


def test_a_file_is_read_by_path(tmp_path):
    path = tmp_path / "own.yaml"
    path.write_text("optimizer: {lr: 1e-3}\n")
    (recipe,) = read_recipe(str(path))
    assert recipe.content == {"optimizer": {"lr": 0.001}}
    assert (recipe.label, recipe.shipped, recipe.is_config) == ("own", False, False)
    path.write_text("recipe: digits\n")
    assert read_recipe(str(path))[0].is_config
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="not text in UTF-8"):
        read_recipe(str(path))
    path.write_text("- 1\n")
    with pytest.raises(UsageError, match="must hold sections"):
        read_recipe(str(path))
    with pytest.raises(UsageError, match="no recipe 'nothing'"):
        read_recipe("nothing")
    with pytest.raises(UsageError, match="here is not valid YAML"):
        read_yaml("a: [", "here")


def test_a_file_that_is_extended_is_found_beside_the_one_that_extends_it(tmp_path, monkeypatch):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "root.yaml").write_text("extends: svhn\ntrain: {epochs: 3}\n")
    (tmp_path / "folder" / "middle.yaml").write_text("extends: root.yaml\n")
    (tmp_path / "leaf.yaml").write_text("extends: folder/middle.yaml\n")
    monkeypatch.chdir(tmp_path)
    found = read_recipe("leaf.yaml")
    assert [recipe.label for recipe in found] == ["paper", "svhn", "root", "middle", "leaf"]
    assert all("extends" not in recipe.content for recipe in found)
    absolute = tmp_path / "folder" / "middle.yaml"
    (tmp_path / "leaf.yaml").write_text(f"extends: {absolute}\n")
    assert len(read_recipe("leaf.yaml")) == 5


@pytest.mark.parametrize(
    ("extended", "message"),
    [
        ("no.yaml", "recipe .*a.yaml extends 'no.yaml', which is neither a file nor one of"),
        ("folder/../a.yaml", "recipe .*a.yaml extends itself: .*a.yaml -> .*folder/../a.yaml"),
        ("b.yaml", "recipe .*a.yaml extends itself: .*a.yaml -> .*b.yaml -> .*a.yaml"),
        ("a.yaml", "recipe .*a.yaml extends itself: .*a.yaml -> .*a.yaml"),
        ("[cifar10, svhn]", r"recipe .*a.yaml extends \['cifar10', 'svhn'\]; give a recipe's name"),
    ],
)
def test_a_chain_that_leads_nowhere_is_refused_in_one_line(tmp_path, extended, message):
    (tmp_path / "a.yaml").write_text(f"extends: {extended}\n")
    (tmp_path / "b.yaml").write_text("extends: a.yaml\n")
    (tmp_path / "folder").mkdir()
    with pytest.raises(UsageError, match=message) as refusal:
        read_recipe(str(tmp_path / "a.yaml"))
    assert "\n" not in str(refusal.value)


def test_a_recipe_extends_recipes_alone(tmp_path):
    (tmp_path / "secret.txt").write_text("password: 1")
    (tmp_path / "r.yaml").write_text("extends: secret.txt")
    with pytest.raises(UsageError, match=r"a file of settings must end in \.yaml or \.yml"):
        read_recipe(str(tmp_path / "r.yaml"))
