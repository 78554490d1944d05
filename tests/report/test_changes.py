from concont.report.changes import find_changes
from made_runs import make_run


def test_what_the_user_chose_stands_beside_the_recipes_value(tmp_path):
    path = make_run(tmp_path / "run", epochs=7, method={"threshold": 0.7})
    what, changes = find_changes(path / "config.yaml")
    assert what == "the recipe digits"
    assert changes["train.epochs"][0] == 7
    assert changes["method.threshold"][0] == 0.7
    assert all(value != usual for value, usual in changes.values())
    assert not any(name.startswith("data.source") for name in changes)


def test_a_recipe_that_is_gone_is_replaced_by_the_defaults(tmp_path):
    path = make_run(tmp_path / "run") / "config.yaml"
    path.write_text(path.read_text().replace("recipe: digits", "recipe: mine"))
    what, changes = find_changes(path)
    assert what == "the built-in defaults"
    assert changes["train.epochs"] == (4, 800)


def test_a_run_of_code_of_ones_own_is_compared_without_running_it(tmp_path):
    path = make_run(tmp_path / "run") / "config.yaml"
    text = path.read_text().replace("name: concont", "name: /nowhere/mine.py:Mine")
    path.write_text(text)
    what, changes = find_changes(path)
    assert what == "the built-in defaults"
    assert "train.epochs" in changes
