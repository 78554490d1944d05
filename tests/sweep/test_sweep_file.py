"""A sweep's file: every combination once, with complete settings; what is wrong in it is named."""

import json

import pytest
import yaml

from concont.config.resolve import resolve
from concont.errors import UsageError
from concont.sweep.sweep_file import read_jobs

BASE = {"recipe": "digits", "train": {"epochs": 3}}


@pytest.fixture
def jobs(tmp_path):
    def read(content, root=None):
        path = tmp_path / "sweep.yaml"
        path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
        return read_jobs(path, root)

    return read


def test_every_combination_of_axes_and_seeds_is_a_job(jobs):
    """The file of interface.md, as it stands there."""
    found = jobs(
        "base: {recipe: digits, train: {epochs: 3}}\n"
        "axes: {method.threshold: [0.9, 1.0], train.partial_share: [null, 0.25]}\n"
        "seeds: [1, 2]\n"
    )
    assert len({job.key for job in found}) == len(found) == 8
    points = [
        (s.method.threshold, s.train.partial_share, s.train.seed, s.data.seed)
        for s in (job.settings for job in found)
    ]
    grid = [(0.9, None), (0.9, 0.25), (1.0, None), (1.0, 0.25)]
    assert points == [(*point, seed, seed) for seed in (1, 2) for point in grid]
    assert found[1].name == "digits, method.threshold=0.9, train.partial_share=0.25, seed 1"
    flags = {"method": {"threshold": 0.9}, "train": {"epochs": 3, "partial_share": 0.25}}
    assert found[1].settings == resolve({"data": {"source": "digits"}, **flags}, "digits")


def test_runs_are_laid_on_the_base_and_varied_too(jobs):
    runs = [{"name": "small", "model": {"width": 4}}, {"method": {"name": "pico"}}, {}]
    found = jobs({"base": BASE, "runs": runs, "axes": {"optimizer.lr": [0.01, 0.02]}})
    assert [job.name for job in found] == [
        f"{name}, optimizer.lr={lr}, seed 1"
        for name in ("small", "digits", "digits")
        for lr in (0.01, 0.02)
    ]
    settings = [job.settings for job in found]
    assert [s.model.width for s in settings] == [4, 4, 16, 16, 16, 16]
    assert [s.method.name for s in settings] == ["concont"] * 2 + ["pico"] * 2 + ["concont"] * 2
    assert {s.train.epochs for s in settings} == {3}


def test_equal_settings_are_one_job(jobs):
    assert len(jobs({"base": BASE, "axes": {"train.epochs": [3, 3, 4]}, "seeds": [1, 1]})) == 2
    first, second = jobs({"base": BASE, "runs": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}) * 2
    assert first.name == second.name == "a, seed 1"


def test_a_base_alone_is_one_job_with_its_own_seeds(jobs):
    (job,) = jobs({"base": {**BASE, "data": {"seed": 5, "holdout": 0.1}}})
    assert (job.settings.data.seed, job.settings.train.seed) == (5, 1)
    assert job.settings.data.holdout == 0.1


def test_a_recipe_may_be_an_axis_and_a_file(jobs, tmp_path):
    (tmp_path / "mine.yaml").write_text("data: {source: digits}\nmodel: {name: small, width: 8}\n")
    found = jobs({"axes": {"recipe": ["digits", str(tmp_path / "mine.yaml")]}})
    assert [job.settings.recipe for job in found] == ["digits", "mine"]
    assert [job.settings.model.width for job in found] == [16, 8]


def test_a_named_view_can_be_varied_in_one_value(jobs):
    base = {**BASE, "views": {"strong": "pico"}}
    found = jobs({"base": base, "axes": {"views.strong.draws": [1, 2]}})
    assert [job.settings.views.strong.draws for job in found] == [1, 2]
    assert {job.settings.views.strong.cutout for job in found} == {(0.0, 16.0)}


def test_data_of_ones_own_and_a_root(jobs, toy_npz, tmp_path):
    own = {"base": {"data": {"source": str(toy_npz)}}, "axes": {"train.epochs": [1, 2]}}
    one, two = jobs(own)
    assert one.key != two.key
    (named,) = jobs({"base": {"data": {"source": "cifar10"}}}, root=str(tmp_path))
    assert named.settings.data.root == str(tmp_path)


WRONG = {
    "unknown setting method.treshold; did you mean threshold?": {
        "base": BASE,
        "axes": {"method.treshold": [1]},
    },
    "unknown setting train.epoch; did you mean epochs?": {"base": {"train": {"epoch": 1}}},
    "unknown section metod; did you mean method?": {"base": BASE, "runs": [{"metod": {}}]},
    "unknown section name": {"base": {**BASE, "name": "mine"}},
    "axes.method.threshold is 0.7; it must be a list": {"axes": {"method.threshold": 0.7}},
    "axes.train.epochs is []; it must be a list": {"axes": {"train.epochs": []}},
    "axes.threshold: write a setting as section.key": {"axes": {"threshold": [1]}},
    "axes must hold settings": {"base": BASE, "axes": {}},
    "axes.train.seed: seeds sets it too": {"axes": {"train.seed": [1]}, "seeds": [1]},
    "unknown key axis; a sweep holds base, axes, runs, seeds": {"axis": {}},
    "base is 3; it must hold settings": {"base": 3},
    "runs is {}; it must be a list": {"runs": {}},
    "run 2 of runs is 3": {"runs": [{}, 3]},
    "run 1 of runs: its name is 3, no text": {"runs": [{"name": 3}]},
    "seeds is [true]; it must be a list of whole numbers": {"base": BASE, "seeds": [True]},
    "seeds is 1;": {"seeds": 1},
    "recipe is 3; it must be a name or a file": {"base": {"recipe": 3}},
    "no recipe 'nosuch'": {"base": {"recipe": "nosuch"}},
    'train.epochs is "many"': {"base": BASE, "axes": {"train.epochs": ["many"]}},
    "it does not say what to train on": {"base": {"train": {"epochs": 1}}},
    "nosuch.npz: no such file": {"base": {"data": {"source": "nosuch.npz"}}},
    "found none of them": [1],
    "is not valid YAML": "base: [",
}


@pytest.mark.parametrize("message", WRONG)
def test_what_is_wrong_is_named_with_the_file(jobs, message):
    with pytest.raises(UsageError, match="sweep.yaml") as found:
        jobs(WRONG[message])
    assert message in str(found.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(UsageError, match="nosuch.yaml cannot be read"):
        read_jobs(tmp_path / "nosuch.yaml")


def test_a_sweep_of_too_many_runs_is_refused_at_once(tmp_path):
    path = tmp_path / "grid.yaml"
    values = [*range(1, 101)]
    axes = {f"views.strong.{name}": values for name in ("draws", "rotate", "shear", "translate")}
    path.write_text(json.dumps({"axes": axes}))
    with pytest.raises(UsageError, match=r"grid.yaml: it asks for 100,000,000 runs; the most are"):
        read_jobs(path)


def test_a_sweep_names_recipes_alone(tmp_path):
    (tmp_path / "secret.txt").write_text("password: 1")
    (tmp_path / "s.yaml").write_text(f"base: {{recipe: {tmp_path / 'secret.txt'}}}")
    with pytest.raises(UsageError, match=r"a file of settings must end in \.yaml or \.yml"):
        read_jobs(tmp_path / "s.yaml")
