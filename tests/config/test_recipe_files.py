"""Recipes by name and file; what a caller does to one stays the caller's."""

import pytest

from concont.config.recipe_files import overlay, read_recipe, read_yaml, recipe_names, row_names
from concont.errors import UsageError


def test_what_ships_is_found_by_name():
    assert {"cifar10", "cifar100", "svhn", "digits", "default"} <= set(recipe_names())
    assert read_recipe("cifar10")["train"]["epochs"] == 800
    assert set(row_names()) == set(overlay("rows"))
    assert {"pico", "dpll"} <= set(overlay("methods"))


def test_a_recipe_is_the_callers_own():
    read_recipe("cifar10")["train"]["epochs"] = 1
    assert read_recipe("cifar10")["train"]["epochs"] == 800


def test_a_file_is_read_by_path(tmp_path):
    path = tmp_path / "own.yaml"
    path.write_text("optimizer: {lr: 1e-3}\n")
    assert read_recipe(str(path)) == {"optimizer": {"lr": 0.001}}
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
