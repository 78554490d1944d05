from concont.config.flat_settings import (
    UNTOLD,
    drop_untold,
    flatten,
    flatten_settings,
    list_places,
    list_told,
    shorten_method,
)
from concont.config.resolve import check

PATHS = {
    "data": {
        **{"source": "/home/me/t.csv", "root": "/home/me", "images": "/home/me/photos"},
        **{"unlabeled_images": "/home/me/more", "candidates": "/home/me/sets.npz"},
    },
    "model": {"start": "/home/me/first/model.safetensors", "start_digest": "abc"},
}


def test_names_are_those_that_set_takes():
    assert flatten({"train": {"epochs": 5}, "views": {"weak": {"pad": 1}}}) == {
        "train.epochs": 5,
        "views.weak.pad": 1,
    }


def test_only_sections_of_the_method_are_listed():
    flat = flatten_settings(check({"method": {"name": "sspl"}}))
    assert {name.partition(".")[0] for name in flat} == {"recipe", "data", "method"}


def test_what_lies_where_is_not_told_but_its_digest_is():
    told = list_told(check(PATHS))
    assert "/home/me" not in str(told)
    assert told["model.start_digest"] == "abc"
    assert not UNTOLD & set(told)


def test_what_has_no_effect_is_not_told():
    small, narrow = (
        list_told(check({"model": {"name": name}})) for name in ("small", "narrow-resnet18")
    )
    assert "model.width" in narrow
    assert not {"data.stratified", "train.device", "model.init"} & set(small)


def test_paths_are_those_that_are_given():
    assert set(list_places(check(PATHS))) == {*PATHS["data"].values(), PATHS["model"]["start"]}


def test_a_method_of_ones_own_is_told_without_its_folder():
    assert shorten_method("/home/me/mine.py:Mine") == "mine.py:Mine"
    assert shorten_method("concont") == "concont"
    assert drop_untold({"method.name": "/home/me/mine.py:Mine"}) == {"method.name": "mine.py:Mine"}
