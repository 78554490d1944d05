from dataclasses import asdict, replace
from pathlib import Path

import pytest
import yaml

from concont.config.layers import merge
from concont.config.recipe_files import recipe_names, row_names
from concont.config.resolve import check, parse_assignments, read_settings, resolve, write_yaml
from concont.errors import UsageError
from concont.methods.concont import ConCont
from concont.methods.partial import Partial
from concont.runs.model_settings import Model
from concont.runs.settings import Optimizer
from concont.runs.view_settings import STRONG_VARIANTS, Views


def test_defaults_then_recipe_then_flags():
    settings = resolve({"data": {"source": "digits", "ambiguity": 0.5}}, None, ["train.epochs=7"])
    assert settings.recipe == "digits"
    assert settings.data.labeled == 0.1  # the recipe's
    assert settings.data.ambiguity == 0.5  # a flag's
    assert settings.train.epochs == 7
    assert settings.optimizer.momentum == 0.9  # the default


def test_other_data_takes_the_default_recipe():
    settings = resolve({"data": {"source": "mine.npz"}})
    assert settings.recipe == "default"
    assert settings.data.labeled is None
    assert settings.method == ConCont()


def test_a_file_is_found_again_from_any_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text("data: {source: mine.npz}")
    assert resolve({}, recipe="mine.yaml").data.source == str(tmp_path / "mine.npz")
    assert resolve({"data": {"source": "x.npz"}}).data.source == str(tmp_path / "x.npz")


def test_another_method_does_not_inherit_the_recipes_method_settings():
    settings = resolve({"data": {"source": "digits"}, "method": {"name": "partial"}})
    assert settings.method == Partial()


@pytest.mark.parametrize(("method", "unlabeled"), [("concont", True), ("partial", False)])
def test_unlabelled_images_are_for_the_methods_that_want_them(method, unlabeled):
    flags = {"data": {"source": "digits"}, "method": {"name": method}}
    assert resolve(flags).data.unlabeled is unlabeled
    assert resolve(flags, None, ["data.unlabeled=true"]).data.unlabeled is True


@pytest.mark.parametrize("name", recipe_names())
def test_every_shipped_recipe_is_valid_and_reads_back(name, tmp_path):
    settings = resolve({}, recipe=name)
    copy = tmp_path / f"{name}.yaml"
    copy.write_text(write_yaml(settings))
    assert resolve({}, recipe=str(copy)) == settings
    assert resolve({}, recipe=str(copy)).hash() == settings.hash()  # no 4 that became 4.0


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("method.temprature=1", "unknown setting method.temprature; did you mean temperature?"),
        ("views.weak.krop=[1,1]", "unknown setting views.weak.krop; did you mean crop?"),
        ("trian.epochs=1", "unknown section trian; did you mean train?"),
        ("train.epochs=0", "train.epochs is 0: .*greater than or equal to 1"),
        ("train.epochs=many", 'train.epochs is "many": .*valid integer'),
        ("train.epochs=2.5", "train.epochs is 2.5: .*integer"),
        ("train.epochs=true", "train.epochs is true: .*integer"),
        ("optimizer.lr=-1", "optimizer.lr is -1: .*greater than 0"),
        ("optimizer.lr=.nan", "optimizer.lr is NaN: .*less than or equal to 10+"),
        ("optimizer.lr=.inf", "optimizer.lr is Infinity: .*less than or equal to 10+"),
        ("optimizer.lr=1e308", "optimizer.lr is 1e.308: .*less than or equal to 10+"),
        ("method.repr_weight=1e16", "less than or equal to 10+"),
        ("data.seed=99999999999999999999", "data.seed is 9+: .*less than"),
        ("train.seed=-99999999999999999999", "train.seed is -9+: .*greater than"),
        ("optimizer.momentum=1", "optimizer.momentum is 1: .*less than 1"),
        ("data.ambiguity=1", "data.ambiguity is 1: .*less than 1"),
        ("data.labeled=1.5", "labeled is 1.5; it must be a share"),
        ("data.unlabeled=1", "data.unlabeled is 1: .*boolean"),
        ("method.selection=best", "method.selection is \"best\": .*'ours', 'hcp'"),
        ("method.name=picco", "method.name is 'picco'; it must be one of concont, dpll"),
        ("method.threshold_lower=2", "method: threshold_lower 2 is above threshold_upper"),
        ("views.strong.operations=[spin]", 'views.strong.operations.0 is "spin"'),
        ("views.strong.crop=[1,0.5]", "views.strong: crop is 1 to 0.5; give the smaller first"),
        ("train=5", "write it as section.key=value"),
        ("train.epochs", "write it as section.key=value"),
        ("train.epochs=[1", "is not valid YAML"),
        ("views.strong=best", "views.strong is 'best'; it must be one of measured, pico"),
        ("data.labeled=.inf", "labeled is inf; it must be a share"),
        ("method.name=[a]", r"method.name is \['a'\]; it must be one of"),
        ("data.source=5", "data.source is 5: .*string"),
        ("train.seed=2024-01-01", 'train.seed is "2024-01-01": .*integer'),
        ("data.source=2024-13-45", "is not valid YAML"),
        ("model.name=vgg", "model: no network 'vgg'; there are .*resnet18"),
        ("views.weak.crop=[1]", "views.weak.crop.1 is "),
    ],
)
def test_mistakes_name_the_setting_the_value_and_what_is_allowed(assignment, message):
    with pytest.raises(UsageError, match=message):
        resolve({"data": {"source": "digits"}}, None, [assignment])


def test_a_choice_of_two_kinds_is_refused_in_one_line():
    for value, shown, first in (("-1", "-1", "greater than 0"), ("x", '"x"', "a valid number")):
        with pytest.raises(UsageError) as refusal:
            resolve({"method": {"name": "parm"}}, None, [f"method.mu={value}", "method.k=0"])
        assert str(refusal.value).splitlines() == [
            f"method.mu is {shown}: input should be {first}, or 'cv'",
            "method.k is 0: input should be greater than or equal to 1",
        ]


def test_a_strong_view_by_name_stands_for_all_its_values(tmp_path):
    assert resolve({}, None, ["views.strong=pico"]).views.strong == STRONG_VARIANTS["pico"]
    (tmp_path / "mine.yaml").write_text("views: {strong: pico}")
    changed = resolve({}, str(tmp_path / "mine.yaml"), ["views.strong.draws=1"]).views.strong
    assert changed == replace(STRONG_VARIANTS["pico"], draws=1)
    assert resolve({}, "cifar10").views.strong == STRONG_VARIANTS["measured"]


def test_how_sets_are_drawn_is_no_part_of_a_run_on_true_labels():
    config = {"data": {"source": "digits"}, "method": {"name": "supervised"}}
    drawn = {"ambiguity": 0.3, "noise": 0.1, "labeled": 0.5}
    noisy = resolve(merge(config, {"data": drawn}))
    assert noisy.hash() == resolve(config).hash()


@pytest.mark.parametrize(
    ("name", "labeled", "ambiguity", "tau"),
    [
        ("cifar10", 0.1, 0.5, (0.8, 0.5, 0.95)),
        ("svhn", 0.1, 0.5, (0.8, 0.5, 0.95)),
        ("cifar100", 0.2, 0.1, (0.6, 0.4, 0.8)),
    ],
)
def test_the_papers_recipes(name, labeled, ambiguity, tau):
    settings = resolve({"data": {"source": name}})
    assert settings.recipe == name
    assert (settings.data.labeled, settings.data.ambiguity) == (labeled, ambiguity)
    method = settings.method
    assert (method.threshold, method.threshold_lower, method.threshold_upper) == tau
    plain = {k: v for k, v in asdict(method).items() if not k.startswith("threshold")}
    assert plain == {k: v for k, v in asdict(ConCont()).items() if not k.startswith("threshold")}
    assert settings.optimizer == Optimizer()
    assert (settings.train.epochs, settings.train.batch_size) == (800, 256)
    assert settings.views == Views()
    assert settings.model == Model(init="torch" if name == "cifar10" else "he")


def test_numbers_as_people_write_them():
    assert parse_assignments(["optimizer.lr=1e-3"]) == {"optimizer": {"lr": 1e-3}}
    assert parse_assignments(["a.b.c=x", "a.d=null"]) == {"a": {"b": {"c": "x"}, "d": None}}


def test_the_written_configuration_is_complete():
    plain = yaml.safe_load(write_yaml(resolve({"data": {"source": "digits"}})))
    assert list(plain) == ["recipe", "data", "views", "model", "method", "optimizer", "train"]
    fixed = {
        "data": "source root labeled ambiguity unlabeled seed",
        "optimizer": "lr momentum weight_decay nesterov",
        "train": "epochs batch_size seed evaluate_every checkpoint_every",
        "method": "name selection balance pseudo branches part_loss part_mean label_weight "
        "repr_weight temperature queue momentum teacher",
    }
    for section, names in fixed.items():
        assert set(names.split()) <= set(plain[section])


def test_a_missing_or_broken_recipe(tmp_path):
    with pytest.raises(UsageError, match="no recipe 'nosuch': neither a file nor one of"):
        resolve({}, recipe="nosuch")
    bad = tmp_path / "bad.yaml"
    bad.write_bytes("ä: 1".encode("latin-1"))
    with pytest.raises(UsageError, match="is not text in UTF-8"):
        resolve({}, recipe=str(bad))
    bad.write_text("5: 3")
    with pytest.raises(UsageError, match="unknown section 5"):
        resolve({}, recipe=str(bad))
    with pytest.raises(UsageError, match="epochs is set to a value already"):
        resolve({}, None, ["train.epochs=1", "train.epochs.x=2"])
    bad.write_text("- 1\n- 2\n")
    with pytest.raises(UsageError, match="must hold sections"):
        resolve({}, recipe=str(bad))
    with pytest.raises(UsageError, match="section train is 5"):
        check({"train": 5})


@pytest.mark.parametrize("row", row_names())
def test_every_row_of_the_papers_tables_reads_back(row, tmp_path):
    settings = resolve({"data": {"source": "svhn"}}, row)
    assert settings.recipe == f"svhn+{row}"
    copy = tmp_path / "copy.yaml"
    copy.write_text(write_yaml(settings))
    assert resolve({}, str(copy)).hash() == settings.hash()


def test_flags_win_over_what_a_row_or_a_method_asks_for():
    chosen = resolve({"data": {"source": "cifar10"}}, "pico", ["optimizer.lr=0.5"])
    assert (chosen.optimizer.lr, chosen.model.embedding) == (0.5, 128)
    chosen = resolve({}, "cifar10+dpll", ["data.unlabeled=true", "views.weak.pad=2"])
    assert (chosen.data.unlabeled, chosen.views.weak.pad) == (True, 2)


def test_two_recipes_to_begin_with_are_refused():
    with pytest.raises(UsageError, match="cifar10 and svhn cannot both be begun with"):
        resolve({}, "cifar10+svhn")
    with pytest.raises(UsageError, match="dpll and pico are rows of different methods"):
        resolve({}, "cifar10+dpll+pico")
    with pytest.raises(UsageError, match="dpll is not a row of method pico"):
        resolve({"method": {"name": "pico"}}, "cifar10+dpll")
    with pytest.raises(UsageError, match="nor a row"):
        resolve({}, "two-brunch")


def test_a_recipe_that_extends_another_says_only_what_is_different(tmp_path):
    (tmp_path / "strong.yaml").write_text("extends: cifar10\nmethod: {threshold: 0.9}\n")
    found, base = resolve({}, str(tmp_path / "strong.yaml")), resolve({}, "cifar10")
    assert found.recipe == "strong"
    assert found.method == replace(base.method, threshold=0.9)
    assert replace(found, method=base.method, recipe=base.recipe) == base
    assert "extends" not in write_yaml(found)
    (tmp_path / "pico.yaml").write_text("extends: cifar10\nmethod: {name: pico, queue: 99}\n")
    own, wanted = resolve({}, str(tmp_path / "pico.yaml")), resolve({}, "cifar10+pico")
    assert own.method == replace(wanted.method, queue=99)
    assert (own.views, own.optimizer) == (wanted.views, wanted.optimizer)


def test_what_an_extending_recipe_says_wins_over_what_a_method_brings(tmp_path):
    (tmp_path / "mine.yaml").write_text("extends: svhn\noptimizer: {lr: 0.3}\n")
    found = resolve({"method": {"name": "dpll"}}, str(tmp_path / "mine.yaml"))
    assert (found.optimizer.lr, found.optimizer.schedule) == (0.3, "steps")
    assert found.views == resolve({}, "svhn+dpll").views


def test_a_file_of_settings_is_taken_as_it_is(tmp_path):
    """No recipe is laid below it, not even the one that it names; what is left out is a default."""
    path = tmp_path / "config.yaml"
    settings = resolve({"data": {"source": "digits"}}, "digits")
    path.write_text(write_yaml(settings))
    assert read_settings(path) == settings
    path.write_text("recipe: digits\ndata: {source: mine.npz}\nviews: {strong: pico}\n")
    found = read_settings(path)
    assert (found.recipe, found.model, found.optimizer) == ("digits", Model(), Optimizer())
    assert found.views.strong == STRONG_VARIANTS["pico"]
    assert found.data.source == str(Path("mine.npz").absolute())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must hold sections such as 'train:'"),
        ("[1]", "must hold sections"),
        ("train: {epoch: 1}", "config.yaml: unknown setting train.epoch; did you mean epochs?"),
        ("train: [", "is not valid YAML"),
        ("\udcff", "cannot be read"),
    ],
)
def test_a_file_that_holds_no_settings_is_refused(tmp_path, text, message):
    path = tmp_path / "config.yaml"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(UsageError, match="config.yaml") as found:
        read_settings(path)
    assert message in str(found.value)
