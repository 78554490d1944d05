import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.datasets import load_sample_images

from concont.augment import ops, policies
from concont.augment.views import ViewRenderer, count_uniforms, draw_uniforms, render_views
from concont.runs.view_settings import ALL_OPERATIONS, View, Views
from random_views import IMAGES, WHOLE_IMAGE, make_uniforms, render_one


def test_the_whole_crop_is_the_image():
    square = IMAGES[..., :12]
    assert torch.allclose(
        render_one(square, WHOLE_IMAGE, False, make_uniforms(WHOLE_IMAGE)), square, atol=1e-5
    )
    wide = View(ratio=(16 / 12, 16 / 12))
    assert torch.allclose(render_one(IMAGES, wide, False, make_uniforms(wide)), IMAGES, atol=1e-5)


def test_flip_mirrors_half_of_the_images():
    square = IMAGES[..., :12]
    u = make_uniforms(WHOLE_IMAGE)
    u[:, 4] = torch.tensor([0.1, 0.9, 0.49, 0.5, 0.0, 0.99])
    found = render_one(square, WHOLE_IMAGE, True, u)
    mirrored = torch.tensor([True, False, True, False, True, False])
    expected = torch.where(mirrored[:, None, None, None], square.flip(3), square)
    assert torch.allclose(found, expected, atol=1e-5)


def test_a_crop_enlarges_the_part_it_keeps():
    square = IMAGES[..., :12]
    view = View(crop=(0.25, 0.25), ratio=(1.0, 1.0))
    u = make_uniforms(view, 0.0)  # the upper left quarter
    found = render_one(square, view, False, u)
    expected = torch.nn.functional.interpolate(square[..., :6, :6], scale_factor=2, mode="bilinear")
    assert torch.allclose(found[..., :-1, :-1], expected[..., :-1, :-1], atol=1e-5)


def test_every_image_has_draws_of_its_own():
    same = IMAGES[:1].expand(64, -1, -1, -1)
    view = View(crop=(0.2, 1.0), operations=ALL_OPERATIONS, draws=2, cutout=(6, 6))
    found = render_one(same, view, True, make_uniforms(view, rows=64))
    assert len(found.flatten(1).unique(dim=0)) == 64
    alone = render_one(same[:1], view, True, make_uniforms(view, rows=64)[5:6])
    assert torch.allclose(found[5:6], alone, atol=1e-6)  # and no image knows its neighbours


@pytest.mark.parametrize("name", ALL_OPERATIONS)
def test_each_operation_is_reached_and_only_it(name):
    view = View(ratio=(1.0, 1.0), operations=(name,), draws=1)
    square = torch.rand(6, 3, 24, 24)  # large enough for a histogram to be spread
    found = render_one(square, view, False, make_uniforms(view, 0.9))
    changed = not torch.allclose(found, square, atol=1e-3)
    assert changed == (name != "identity")
    assert found.min() >= 0
    assert found.max() <= 1


def by_pil(images, coefficients):
    """PIL's own bilinear affine transform; coefficients take output to input pixels."""
    done = []
    for image in images:
        pixels = (image * 255).round().byte().permute(1, 2, 0).numpy()
        picture = Image.fromarray(pixels)
        moved = picture.transform(picture.size, Image.Transform.AFFINE, coefficients, BILINEAR)
        done.append(torch.from_numpy(np.array(moved)).permute(2, 0, 1).float() / 255)
    return torch.stack(done)


BILINEAR = Image.Resampling.BILINEAR
PHOTOS = np.stack([photo[100:196:4, 200:328:4] for photo in load_sample_images().images])
REAL = (torch.from_numpy(PHOTOS).permute(0, 3, 1, 2).float() / 255).clamp(min=1 / 255)


def about_centre(a, b, c, d, height, width):
    x, y = width / 2, height / 2
    return (a, b, x - a * x - b * y, c, d, y - c * x - d * y)


@pytest.mark.parametrize(
    ("name", "coefficients"),
    [
        ("rotate", lambda h, w: about_centre(C24, -S24, S24, C24, h, w)),
        ("shear_x", lambda h, w: about_centre(1, 0.24, 0, 1, h, w)),
        ("shear_y", lambda h, w: about_centre(1, 0, 0.24, 1, h, w)),
        ("translate_x", lambda h, w: (1, 0, 0.24 * w, 0, 1, 0)),
        ("translate_y", lambda h, w: (1, 0, 0, 0, 1, 0.24 * h)),
    ],
)
def test_geometry_is_pils(name, coefficients):
    """At 0.9 of the way from -limit to limit: 24 degrees, shear and shift of 0.24."""
    view = View(ratio=(32 / 24, 32 / 24), operations=(name,), draws=1)
    found = render_one(REAL, view, False, make_uniforms(view, 0.9, rows=2))
    expected = by_pil(REAL, coefficients(24, 32))
    inside = (found > 0).all(dim=1) & (expected > 0).all(dim=1)
    assert inside.float().mean() > 0.5
    difference = (found - expected).abs().amax(dim=1)[inside]
    assert difference.quantile(0.98) < 2 / 255  # the rest lies on the border, where PIL blends
    assert ((found > 0).all(dim=1) != (expected > 0).all(dim=1)).float().mean() < 0.06


C24, S24 = math.cos(math.radians(24)), math.sin(math.radians(24))


def test_the_hole_is_grey_and_has_its_size():
    view = View(ratio=(1.0, 1.0), cutout=(4.0, 4.0))
    white = torch.ones(6, 3, 12, 12)
    found = render_one(white, view, False, make_uniforms(view, 0.5))
    assert ((found == 0.5).sum(dim=(1, 2, 3)) == 3 * 16).all()
    assert (found[:, :, 4:8, 4:8] == 0.5).all()


def test_the_second_operation_is_applied_to_the_result_of_the_first():
    view = View(ratio=(1.0, 1.0), operations=("posterize", "solarize"), draws=2)
    square = IMAGES[:1, :, :, :12]
    u = make_uniforms(view, 0.0, rows=1)
    u[0, 5:9] = torch.tensor([0.0, 0.0, 0.9, 0.5])  # posterize to 4 bits, then solarize at 128
    step = (square * 255).round().div(16).floor() * 16 / 255
    expected = torch.where(step * 255 >= 128, 1 - step, step)
    assert torch.allclose(render_one(square, view, False, u), expected, atol=1e-5)


def test_render_draws_each_named_view_afresh():
    images = (IMAGES * 255).to(torch.uint8)
    views = Views(strong=View(crop=(0.2, 1.0)))
    names = ("weak", "strong", "strong2")
    draws = draw_uniforms(views, names, len(images), torch.Generator().manual_seed(1))
    first, again = render_views(images, views, draws), render_views(images, views, draws)
    assert list(first) == list(names)
    assert all(torch.equal(first[n], again[n]) for n in names)
    assert not torch.equal(first["strong"], first["strong2"])
    stream = torch.Generator().manual_seed(1)
    for name, view in (("weak", views.weak), ("strong", views.strong), ("strong2", views.strong)):
        drawn = torch.rand(6, count_uniforms(view), generator=stream)
        assert torch.equal(first[name], render_one(images.float() / 255, view, True, drawn))


def test_no_image_is_rendered_by_a_python_loop():
    """The work for 400 and for 800 images is the same number of tensor operations."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Count(TorchDispatchMode):
        calls = 0

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            Count.calls += 1
            return function(*args, **(kwargs or {}))

    counts = []
    for rows in (400, 800):
        images = torch.zeros(rows, 3, 8, 8, dtype=torch.uint8)
        Count.calls = 0
        with Count():
            stream = torch.Generator().manual_seed(0)
            render_views(images, Views(), draw_uniforms(Views(), ("weak", "strong"), rows, stream))
        counts.append(Count.calls)
    assert counts[0] == counts[1]


def both_ways(images, view, u, monkeypatch):
    """Operations on the images that chose them, and on all images as a GPU does; rows touched."""
    touched = []
    for name, operation in ops.POINTWISE.items():

        def counted(images, amount, operation=operation):
            touched[-1] += len(images)
            return operation(images, amount)

        monkeypatch.setitem(ops.POINTWISE, name, counted)
    found = []
    for everywhere in (False, True):
        touched.append(0)
        monkeypatch.setattr("torch.compiler.is_compiling", lambda everywhere=everywhere: everywhere)
        found.append(render_one(images, view, True, u))
    monkeypatch.undo()
    return found, touched


@pytest.mark.parametrize("name", ALL_OPERATIONS)
def test_an_operation_on_some_images_is_that_on_all(name, monkeypatch):
    others = tuple(other for other in ("identity", "rotate") if other != name)
    view = View(crop=(0.2, 1.0), operations=(name, *others), draws=1, cutout=(4, 4))
    images = torch.rand(9, 3, 24, 24)
    (some, everywhere), touched = both_ways(images, view, make_uniforms(view, rows=9), monkeypatch)
    assert torch.allclose(some, everywhere, atol=1e-6)
    if name in ops.POINTWISE:
        assert 0 < touched[0] < touched[1] == 9


@pytest.mark.parametrize("rows", [1, 3, 60])
def test_an_operation_that_no_image_chose_changes_nothing(rows, monkeypatch):
    view = View(operations=ALL_OPERATIONS, draws=2)
    images, u = torch.rand(rows, 1, 12, 12), make_uniforms(view, rows=rows)
    u[:, 7:9] = 0.0  # the second is the identity: two in a row would amplify rounding
    (some, everywhere), touched = both_ways(images, view, u, monkeypatch)
    assert torch.allclose(some, everywhere, atol=1e-6)
    assert touched[0] <= rows < touched[1]


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        (
            View(operations=ALL_OPERATIONS, draws=1, cutout=(2, 2)),
            ["warp", "apply_pointwise", "cut_hole"],
        ),
        (
            View(policy="cifar10", cutout=(2, 2)),
            ["warp", "cut_hole", "apply_pointwise", "apply_pointwise"],
        ),
    ],
)
def test_the_hole_comes_last_or_before_a_policy(view, expected):
    order = []

    def noted(stage):
        return lambda *args: order.append(stage.__name__.strip("_")) or stage(*args)

    images = torch.rand(4, 3, 8, 8)
    ViewRenderer(noted).render_one(images, view, True, torch.rand(4, count_uniforms(view)))
    assert order == expected


SMOOTH = torch.nn.functional.interpolate(
    torch.rand(16, 3, 3, 4, generator=torch.Generator().manual_seed(1)), (72, 96), mode="bilinear"
)


def enlarge(images):
    return torch.nn.functional.interpolate(images, scale_factor=2, mode="bilinear")


@pytest.mark.parametrize(
    "view",
    [
        View(crop=(0.3, 1.0)),
        View(pad=0.25),
        View(cutout=(0.25, 0.75)),
        *(View(operations=(name,), draws=2) for name in ops.GEOMETRIC),
        View(policy="cifar10", pad=0.125, cutout=(0.5, 0.5)),
        View(policy="svhn"),
        View(jitter=(0.4, 0.4, 0.4, 0.1), grey_chance=0.3),
    ],
    ids=lambda view: "-".join(view.operations[:1]) or view.policy,
)
def test_a_view_of_an_enlarged_image_is_the_enlarged_view(view):
    """Sizes are shares of the image, so the same numbers do the same to it at any size."""
    # By neighbouring pixels, by how many there are of a level, and by steps that a trifle crosses.
    names = {"sharpness", "equalize", "posterize", "solarize"}
    table = policies.load_policy(view.policy)
    kept = [n for n, pair in enumerate(table) if not {op.name for op in pair} & names]
    u = make_uniforms(view, rows=len(SMOOTH))
    if table:
        u[:, 5] = (torch.tensor(kept)[torch.arange(len(u)) % len(kept)] + 0.5) / len(table)
    found = render_one(enlarge(SMOOTH), view, True, u)
    expected = enlarge(render_one(SMOOTH, view, True, u))
    difference = (found - expected).abs().amax(dim=1)  # (B, H, W)
    assert (difference < 0.05).float().mean() > 0.96  # the rest: edges of holes and frames
    still = (enlarge(SMOOTH) - expected).abs().amax(dim=1)
    assert (still < 0.05).float().mean() < 0.9  # and the view is another image


def test_sizes_up_to_1_are_shares_of_the_shorter_side():
    wide = torch.ones(6, 3, 12, 20)
    share = View(ratio=(1.0, 1.0), cutout=(0.5, 0.5))
    found = render_one(wide, share, False, make_uniforms(share, 0.5))
    pixels = render_one(wide, replace(share, cutout=(6.0, 6.0)), False, make_uniforms(share, 0.5))
    assert torch.equal(found, pixels)
    moved, by_pixels = View(pad=0.25), View(pad=3)
    u = make_uniforms(moved)
    assert torch.equal(render_one(IMAGES, moved, True, u), render_one(IMAGES, by_pixels, True, u))


@pytest.mark.parametrize("size", [(32, 32), (28, 28), (12, 16), (7, 50)])
def test_a_crop_alone_is_the_same_bit_for_bit_by_the_shorter_way(size, monkeypatch):
    images = torch.randint(0, 256, (200, 3, *size), dtype=torch.uint8)
    u = make_uniforms(Views().weak, rows=200)
    u[:3, :4] = torch.tensor([[0.0] * 4, [1.0] * 4, [1.0, 0.5, 0.0, 1.0]])
    found = render_one(images, Views().weak, True, u)
    monkeypatch.setattr("torch.compiler.is_compiling", lambda: True)
    assert torch.equal(found, render_one(images, Views().weak, True, u))
