from dataclasses import fields, replace

import pytest

from concont.config.resolve import resolve
from concont.errors import UsageError
from concont.runs.settings import Optimizer
from concont.runs.view_settings import (
    ALL_OPERATIONS,
    NAMED_VIEWS,
    POLICY_VARIANTS,
    WEAK_VARIANTS,
    View,
    list_idle,
)


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
        ("views.weak=3", "views.weak is 3: input should be an object"),
        ("views.weak=null", "views.weak is null: input should be an object"),
        ("views.strong=[1, 2]", r"views.strong is \[1, 2\]: input should be an object"),
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


def test_a_size_is_a_share_or_a_number_of_pixels():
    share, pixels = View(pad=0.125, cutout=(0.25, 0.5)), View(pad=4, cutout=(0.0, 16.0))
    assert (share.pad_in_pixels(32), share.pad_in_pixels(224)) == (4, 28)
    assert (pixels.pad_in_pixels(32), pixels.pad_in_pixels(224)) == (4, 4)
    assert View(pad=1).pad_in_pixels(32) == 1
    assert share.cutout_in_pixels(64) == (16.0, 32.0)
    assert pixels.cutout_in_pixels(64) == (0.0, 16.0)
    with pytest.raises(ValueError, match="two shares up to 1, or two in pixels"):
        View(cutout=(0.5, 16.0))


@pytest.mark.parametrize(("given", "kept"), [("4", 4), ("0.125", 0.125), ("0", 0)])
def test_a_number_of_pixels_stays_a_whole_number(given, kept):
    views = resolve({}, "cifar10", ["views.weak.crop=[1, 1]", f"views.weak.pad={given}"]).views
    assert views.weak.pad == kept
    assert type(views.weak.pad) is type(kept)


@pytest.mark.parametrize("given", ["1.5", "4.0", "-1", "-0.1"])
def test_a_pad_that_is_neither_is_refused(given):
    with pytest.raises(UsageError, match=r"views\.weak\.pad is "):
        resolve({}, "cifar10", ["views.weak.crop=[1, 1]", f"views.weak.pad={given}"])


def test_every_setting_of_a_view_is_for_images_or_for_features():
    of_images, of_features = (set(list_idle(kind)) for kind in (False, True))
    assert of_images == {(k, name) for k in ("weak", "strong") for name in ("noise", "masked")}
    assert ("flip",) in of_features
    assert ("strong", "crop") in of_features
    assert not of_images & of_features
    assert len(of_images | of_features) == 1 + 2 * len(fields(View))


@pytest.mark.parametrize(
    ("model", "views", "said"),
    [
        (
            "mlp",
            {"weak": {"crop": [0.9, 1.0]}},
            "views.weak.crop has no effect with model.name mlp",
        ),
        ("mlp", {"strong": "pico"}, "views.strong.draws has no effect with model.name mlp"),
        ("mlp", {"flip": False}, "views.flip has no effect with model.name mlp"),
        ("small", {"strong": {"noise": 0.5}}, "views.strong.noise has no effect with model.name"),
        (None, {"weak": {"masked": 0.5}}, "views.weak.masked has no effect with model.name resnet"),
    ],
)
def test_what_has_no_effect_on_the_inputs_is_refused(model, views, said):
    plain = {"views": views} | ({} if model is None else {"model": {"name": model}})
    with pytest.raises(UsageError, match=said):
        resolve(plain)


def test_views_of_a_recipe_go_without_a_word_where_the_network_is_another():
    found = resolve({"model": {"name": "mlp"}}, "digits")
    assert found.views.weak == found.views.strong == View()
    again = resolve({"model": {"name": "small"}}, "features")
    assert again.views.weak == again.views.strong == View()
    assert resolve({}, "features").views.strong.noise > 0
