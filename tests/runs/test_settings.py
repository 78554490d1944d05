import json
from dataclasses import replace

import pytest

from concont.config.resolve import resolve
from concont.errors import UsageError
from concont.methods.concont import ConCont
from concont.methods.partial import Partial
from concont.runs.model_settings import Model
from concont.runs.settings import DATA_PATHS, HOW_READ, Data, Optimizer, Settings, Train
from concont.runs.view_settings import OF_FEATURES, View, Views


def test_the_defaults_are_the_papers():
    settings = Settings(ConCont())
    assert settings.optimizer == Optimizer(lr=0.01, momentum=0.9, weight_decay=1e-3, nesterov=False)
    assert (settings.train.epochs, settings.train.batch_size) == (800, 256)
    method = settings.method
    assert (method.label_weight, method.repr_weight, method.threshold_rate) == (1.0, 0.1, 1.0)
    assert (method.threshold, method.threshold_lower, method.threshold_upper) == (0.8, 0.5, 0.95)
    assert (method.queue, method.momentum, method.temperature) == (8192, 0.999, 0.07)
    assert settings.views.weak.crop == (0.5, 1.0)
    assert settings.views.strong.crop == (0.2, 1.0)
    assert len(settings.views.strong.operations) == 14
    assert (settings.model.embedding, settings.model.hidden) == (64, 512)


@pytest.mark.parametrize("labeled", [0.0, -0.1, 1.5, 2.5, float("nan")])
def test_a_labelled_share_or_count(labeled):
    with pytest.raises(ValueError, match="a share above 0 and up to 1, or a whole number from 2"):
        Data(labeled=labeled)


def test_the_hash_knows_what_changes_a_result_and_no_path():
    base = Settings(ConCont(), data=Data(source="digits", unlabeled=True))
    same = [
        replace(base, data=replace(base.data, root="/somewhere/else")),
        replace(base, train=replace(base.train, device="cpu", compile=False, checkpoint_every=5.0)),
        replace(base, recipe="other"),
    ]
    other = [
        replace(base, method=ConCont(temperature=0.1)),
        replace(base, train=Train(seed=2)),
        replace(base, data=replace(base.data, seed=2)),
    ]
    assert {s.hash() for s in same} == {base.hash()}
    assert len({s.hash() for s in [base, *other]}) == 4


WITHOUT_EFFECT = {"data.root", "train.device", "train.compile", "train.checkpoint_every"}
WITHOUT_EFFECT |= {"train.memory_share", "train.rank_timeout", "recipe"}
WITHOUT_EFFECT |= {f"data.{name}" for name in (*DATA_PATHS, *HOW_READ)}  # the digest says it all
WITHOUT_EFFECT |= {"model.width", "method.part_rows"}  # with ResNet, and with the partial loss
WITHOUT_EFFECT |= {"method.part_blend"}  # where the online network sees every weak view
WITHOUT_EFFECT |= {"model.weights_digest", "model.start_digest"}  # where no weights are given
WITHOUT_EFFECT |= {"model.own_digest"}  # where no network of the user's own is
WITHOUT_EFFECT |= {"model.depth"}  # and those of the views of features
WITHOUT_EFFECT |= {f"views.{kind}.{name}" for kind in ("weak", "strong") for name in OF_FEATURES}
WITHOUT_EFFECT |= {"data.stratified"}  # where all rows keep a set


def leaves(section, start=""):
    """The settings by their full names, as those of lists and plain values."""
    for name, value in section.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{start}{name}.")
        else:
            yield f"{start}{name}", section, name


def test_every_other_setting_changes_the_hash(monkeypatch):
    """Each in turn, whatever it is; a setting that is added later is held to it too."""
    base = Settings(ConCont(), data=Data(source="digits", unlabeled=True))
    plain, known = base.as_dict(), base.hash(sets_hash="x")
    for full, section, name in list(leaves(plain)):
        before, section[name] = section[name], "something else"
        monkeypatch.setattr(Settings, "as_dict", lambda self: json.loads(json.dumps(plain)))
        assert (base.hash(sets_hash="x") == known) is (full in WITHOUT_EFFECT), full
        section[name] = before


def test_what_a_choice_leaves_without_effect_is_no_part_of_the_hash():
    for one, other in (
        (ConCont(repr_weight=0), ConCont(repr_weight=0, temperature=0.5, selection="hcp")),
        (ConCont(label_weight=0), ConCont(label_weight=0, pseudo="soft")),
        (ConCont(balance="fixed"), ConCont(balance="fixed", threshold_rate=0.5)),
    ):
        assert Settings(one).hash() == Settings(other).hash()
    assert Settings(ConCont()).hash() != Settings(ConCont(temperature=0.5)).hash()
    strong = replace(Views(), strong=View(cutout=(3.0, 3.0)))
    assert Settings(Partial(), views=strong).hash() == Settings(Partial()).hash()
    assert Settings(ConCont(), views=strong).hash() != Settings(ConCont()).hash()
    weak = replace(Views(), weak=View(pad=2))
    assert Settings(Partial(), views=weak).hash() != Settings(Partial()).hash()


def test_a_file_is_known_by_its_content():
    here, there = (Settings(ConCont(), data=Data(source=p)) for p in ("a/x.npz", "b/y.npz"))
    assert here.hash("digest") == there.hash("digest")
    assert here.hash("digest") != here.hash("other digest")


def test_settings_that_came_later_leave_the_hashes_of_earlier_runs_as_they_were():
    """Of the settings as they were written before `stem`, `weights` and `backbone_rate`."""
    base = Settings(ConCont(), data=Data(source="cifar10", unlabeled=True))
    assert base.hash() == "1d94e7f6dfc2a988"
    asked = {"data": {"labeled": 0.1, "ambiguity": 0.5}}
    hashes = [resolve(asked, f"{data}-strong").hash() for data in ("cifar10", "svhn")]
    assert hashes == ["ae68961c232b0944", "0e361724aebf5eac"]
    others = [
        replace(base, model=Model(stem="half")),
        replace(base, optimizer=Optimizer(backbone_rate=0.1)),
        replace(base, model=Model("timm:resnet18")),
        replace(base, model=Model("timm:resnet18", weights="pretrained")),
    ]
    assert len({s.hash() for s in [base, *others]}) == 5


def test_a_file_of_weights_is_known_by_its_content():
    def of(path, digest):
        model = Model("timm:resnet18", weights=path, weights_digest=digest)
        return Settings(ConCont(), model=model).hash()

    assert of("a/x.safetensors", "one") == of("b/y.safetensors", "one")
    assert of("a/x.safetensors", "one") != of("a/x.safetensors", "two")


def test_a_run_to_start_from_is_known_by_its_content():
    def of(path, digest, **others):
        model = Model("timm:resnet18", start=path, start_digest=digest, **others)
        return Settings(ConCont(), model=model).hash()

    assert of("a/model.safetensors", "one") == of("b", "one") != of("b", "two")
    assert of("a", "one") == of("a", "one", weights="x.safetensors", weights_digest="x")
    assert of("a", "one") != Settings(ConCont(), model=Model("timm:resnet18")).hash()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"name": "resnet81"}, "no network 'resnet81'; did you mean resnet18?"),
        ({"name": "zzz"}, "there are .*small, mlp, or timm:NAME"),
        ({"name": "small", "weights": "pretrained"}, "weights are for a timm:NAME; small starts"),
        ({"name": "timm:resnet18", "weights": "x.pth"}, "convert it once: safetensors.torch.save"),
        ({"start": "run/checkpoint.pt"}, "give a run, or its model.safetensors"),
        ({"name": "timm:resnet18", "weights": "x.npz"}, "give a FILE.safetensors, or `pretrained`"),
    ],
)
def test_networks_and_weights_that_cannot_be(values, message):
    with pytest.raises(ValueError, match=message):
        Model(**values)


def test_the_views_of_images_and_of_features_are_told_apart_by_the_hash():
    images = Settings(ConCont(), data=Data(source="digits", unlabeled=True))
    features = replace(images, model=Model("mlp"))

    def change(settings, **values):
        views = settings.views
        return replace(settings, views=replace(views, weak=replace(views.weak, **values))).hash()

    assert change(images, noise=0.5, masked=0.5) == images.hash()
    assert change(images, crop=(0.9, 1.0)) != images.hash()
    assert change(features, crop=(0.9, 1.0), pad=0) == features.hash()
    assert len({features.hash(), change(features, noise=0.5), change(features, masked=0.5)}) == 3
    assert replace(features, views=replace(features.views, flip=False)).hash() == features.hash()
    assert replace(features, model=Model("mlp", depth=3)).hash() != features.hash()


@pytest.mark.parametrize("seconds", [0, -1, 1e7, 1e15, float("inf"), float("nan")])
def test_no_rank_waits_longer_than_a_clock_can_count(seconds):
    with pytest.raises(UsageError, match="train.rank_timeout"):
        resolve({"data": {"source": "digits"}, "train": {"rank_timeout": seconds}})
