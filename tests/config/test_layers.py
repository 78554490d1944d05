"""What wins over what, and what has no effect."""

from dataclasses import dataclass, replace

import pytest
import yaml

from concont.config.layers import Layer, drop_unused, last_method, layers_for, merge, merge_layers
from concont.config.recipe_files import Recipe
from concont.config.resolve import check, parse_assignments, resolve, write_yaml
from concont.errors import UsageError
from concont.types import find_unused, setting


@dataclass(frozen=True)
class Section:
    """A setting under two choices."""

    kind: str = "plain"
    on: bool = True
    share: float = setting(0.5, only_with={"kind": ("mixed", "split"), "on": True})


class Brought:
    """A method that brings something to two recipes."""

    __dataclass_fields__ = Section.__dataclass_fields__
    brings = {"root": {"train": {"a": 2, "b": 2}}, "leaf": {"train": {"c": 3}}}  # noqa: RUF012


def test_a_setting_has_an_effect_only_with_all_the_choices_that_it_names():
    assert find_unused(Section, {}) == {"share": "kind"}
    assert find_unused(Section, {"kind": "mixed"}) == find_unused(Section, {"kind": "split"}) == {}
    assert find_unused(Section, {"kind": "mixed", "on": False}) == {"share": "on"}


def test_merging_goes_deep_and_replaces_lists():
    base = {"a": {"b": 1, "c": [1, 2]}, "d": 1}
    assert merge(base, {"a": {"c": [3]}}) == {"a": {"b": 1, "c": [3]}, "d": 1}


def test_the_last_method_named_is_the_one():
    assert last_method([]) == "concont"
    assert last_method([{"method": {"name": "pico"}}, {"method": {"queue": 5}}, {}]) == "pico"


def test_what_a_method_brings_lies_over_the_recipe_of_that_name_and_under_what_extends_it():
    root = Recipe("root", True, {"train": {"a": 1, "b": 1, "c": 1}})
    leaf = Recipe("leaf", True, {"train": {"b": 5, "c": 5}})
    mine = Recipe("x/leaf.yaml", False, {"train": {"d": 7}})
    found = merge_layers(layers_for(Brought, "brought", [root, leaf, mine]), {})
    assert found["train"] == {"a": 2, "b": 5, "c": 3, "d": 7}


@pytest.mark.parametrize("choice", ["first", "same", "later"])
def test_what_had_no_effect_when_it_was_said_is_refused_and_else_it_goes(choice):
    share, kinds = {"share": 0.1}, {"part": Section}
    layers = {
        "first": [{"kind": "mixed", **share}, {"kind": "plain"}],  # said of another choice
        "same": [{"kind": "plain", **share}],
        "later": [{"kind": "mixed"}, {"kind": "plain"}, share],
    }[choice]
    laid = [Layer({"part": layer}) for layer in layers]
    if choice == "first":
        assert merge_layers(laid, kinds) == {"part": {"kind": "plain"}}
        return
    with pytest.raises(UsageError, match="part.share has no effect with part.kind plain"):
        merge_layers(laid, kinds)
    borrowed = [Layer({"part": layer}, frozenset({"part"})) for layer in layers]
    assert merge_layers(borrowed, kinds) == drop_unused({"part": {"kind": "plain"}}, kinds)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["model.width=8"], "model.width has no effect with model.name resnet18"),
        (
            ["model.name=small", "model.init=torch"],
            "model.init has no effect with model.name s",
        ),
        (["method.part_rows=all"], "method.part_rows has no effect with method.part_loss partial"),
        (
            ["method.part_loss=none", "method.part_mean=partial"],
            "method.part_mean has no effect with method.part_loss none",
        ),
        *(
            (
                [f"method.balance={balance}", "method.threshold_rate=0.5"],
                f"method.threshold_rate has no effect with method.balance {balance}",
            )
            for balance in ("fixed", "da", "cpl")
        ),
        (
            ["method.name=dpll", "method.threshold=0.7"],
            "method.threshold has no effect with method.controlled False",
        ),
    ],
)
def test_a_setting_without_effect_is_refused_from_a_user_and_from_a_recipe(
    tmp_path, words, message
):
    with pytest.raises(UsageError, match=message):
        resolve({}, "cifar10", words)
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(parse_assignments(words)))
    with pytest.raises(UsageError, match=message):
        resolve({}, str(tmp_path / "mine.yaml"))


def test_the_default_may_be_said_and_a_recipes_own_gives_way_to_another_choice():
    assert resolve({}, "cifar10", ["model.width=32"]).model.width == 32
    assert resolve({}, "digits", ["model.name=resnet18"]).model.width == 32  # the recipe's is 16
    assert resolve({}, "cifar10", ["model.name=small"]).model.init == "he"
    assert resolve({}, "cifar100+da").method.threshold_lower == 0.5  # the recipe's is 0.4
    assert resolve({}, "cifar100+dpll-controller").method.threshold_lower == 0.4


def test_what_has_no_effect_is_not_hashed_and_is_still_read_from_older_runs(tmp_path):
    settings = resolve({}, "cifar100+vanilla")
    plain = settings.as_dict()
    plain["method"] |= {"threshold_lower": 0.4, "threshold_upper": 0.8, "part_rows": "all"}
    plain["model"]["width"] = 16
    assert check(plain) == settings
    older = replace(settings, model=replace(settings.model, width=16))
    older = replace(older, method=replace(older.method, threshold_lower=0.4))
    assert older.hash() == settings.hash()
    assert replace(older, method=replace(older.method, threshold=0.7)).hash() != settings.hash()
    (tmp_path / "config.yaml").write_text(write_yaml(older))
    read_back = resolve({}, str(tmp_path / "config.yaml"))
    assert replace(read_back, recipe=settings.recipe) == settings
