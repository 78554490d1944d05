import json
from dataclasses import replace

import pytest

from concont.config.resolve import resolve
from concont.errors import UsageError
from concont.methods.concont import ConCont
from concont.runs.settings import (
    ALL_OPERATIONS,
    NAMED_VIEWS,
    POLICY_VARIANTS,
    WEAK_VARIANTS,
    Data,
    Optimizer,
    Settings,
    Train,
    View,
)


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


def test_spans_run_upwards():
    with pytest.raises(ValueError, match="give the smaller first"):
        View(enhance=(1.9, 0.1))
    with pytest.raises(ValueError, match="crop is"):
        View(crop=(0.0, 1.0))
    with pytest.raises(ValueError, match="draws needs a list"):
        View(draws=2)
    with pytest.raises(ValueError, match="nesterov needs a momentum"):
        Optimizer(momentum=0.0, nesterov=True)


def test_parts_of_a_view_that_exclude_each_other():
    with pytest.raises(ValueError, match="pad is 4, which needs a crop of 1 to 1, not"):
        View(crop=(0.5, 1.0), pad=4)
    with pytest.raises(ValueError, match="policy svhn has operations of its own"):
        View(policy="svhn", operations=("rotate",))
    with pytest.raises(ValueError, match="policy svhn has operations of its own"):
        View(policy="svhn", operations=("rotate",), draws=2)
    with pytest.raises(ValueError, match="jitter of the hue is 0.6; it must be up to 0.5"):
        View(jitter=(0.4, 0.4, 0.4, 0.6))


def test_randaugment_has_14_operations_and_no_negative():
    assert len(ALL_OPERATIONS) == 14
    assert "invert" not in ALL_OPERATIONS
    assert View(operations=("invert",), draws=1).operations == ("invert",)


def test_published_views_have_names():
    pico, pad = WEAK_VARIANTS["pico"], WEAK_VARIANTS["pad4"]
    assert pico == View(
        crop=(0.2, 1.0), jitter=(0.4, 0.4, 0.4, 0.1), jitter_chance=0.8, grey_chance=0.2
    )
    assert (pad.pad, pad.crop) == (4, (1.0, 1.0))
    dpll, svhn = POLICY_VARIANTS["dpll"], POLICY_VARIANTS["dpll-svhn"]
    assert (dpll.pad, dpll.policy, dpll.cutout) == (4, "cifar10", (16.0, 16.0))
    assert (svhn.pad, svhn.policy, svhn.cutout) == (0, "svhn", (20.0, 20.0))
    assert svhn.crop == svhn.ratio == (1.0, 1.0)


@pytest.mark.parametrize(("kind", "name"), [(k, n) for k, vs in NAMED_VIEWS.items() for n in vs])
def test_either_view_can_be_given_by_name(kind, name):
    flags = {"data": {"source": "cifar10"}}
    settings = resolve(flags, None, [f"views.{kind}={name}"])
    assert getattr(settings.views, kind) == NAMED_VIEWS[kind][name]
    other = "strong" if kind == "weak" else "weak"
    assert getattr(settings.views, other) == getattr(resolve(flags).views, other)


def test_a_named_view_in_a_recipe_can_be_changed_in_parts(tmp_path):
    (tmp_path / "mine.yaml").write_text("views: {weak: pico, strong: dpll}")
    views = resolve({}, str(tmp_path / "mine.yaml"), ["views.weak.grey_chance=0"]).views
    assert views.weak == replace(WEAK_VARIANTS["pico"], grey_chance=0.0)
    assert views.strong == POLICY_VARIANTS["dpll"]


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("views.weak=dpll", "views.weak is 'dpll'; it must be one of pico, pad4, or settings"),
        ("views.strong=pad4", "views.strong is 'pad4'; it must be one of measured, pico, dpll, dp"),
        ("views.weak.pad=4", "views.weak: pad is 4, which needs a crop of 1 to 1"),
        ("views.strong.policy=cifar10", "views.strong: policy cifar10 has operations of its own"),
        ("views.strong.policy=imagenet", 'views.strong.policy is "imagenet": .*'),
        ("views.weak.jitter=[0.4]", "views.weak.jitter"),
        ("views.weak.gray_chance=1", "unknown setting .*gray_chance; did you mean grey_chance?"),
    ],
)
def test_mistakes_in_views_are_named(assignment, message):
    with pytest.raises(UsageError, match=message):
        resolve({"data": {"source": "cifar10"}}, None, [assignment])


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
WITHOUT_EFFECT |= {"train.memory_share", "recipe"}
WITHOUT_EFFECT |= {"model.width", "method.part_rows"}  # with ResNet, and with the partial loss


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


def test_a_file_is_known_by_its_content():
    here, there = (Settings(ConCont(), data=Data(source=p)) for p in ("a/x.npz", "b/y.npz"))
    assert here.hash("digest") == there.hash("digest")
    assert here.hash("digest") != here.hash("other digest")
