"""AutoAugment's policies against torchvision's, one operation at a time and in pairs."""

import math

import numpy as np
import pytest
import torch
from sklearn.datasets import load_sample_images

from concont.augment import ops, policies
from concont.augment.views import count_uniforms
from concont.runs.view_settings import View
from random_views import render_one

PHOTOS = np.stack([photo[100:228:4, 200:328:4] for photo in load_sample_images().images])
REAL = torch.from_numpy(PHOTOS).permute(0, 3, 1, 2).clamp(min=1)  # (2, 3, 32, 32), no black
MOVING = (*policies.TORCHVISION_NAMES, "Rotate")


def near(name, chance, minus, plus):
    return (name, chance, pytest.approx(minus), pytest.approx(plus))


def test_the_pairs_of_cifar10_are_the_published_ones():
    table = policies.load_policy("cifar10")
    assert len(table) == 25
    two, seven = math.radians(2 * 30 / 9), 0.1 * 7
    assert table[0] == (near("invert", 0.1, 0, 0), near("contrast", 0.2, 0.4, 1.6))
    assert table[1] == (near("rotate", 0.7, -two, two), near("translate_x", 0.3, -14 / 32, 14 / 32))
    assert table[6] == (
        near("color", 0.4, 0.7, 1.3),
        near("brightness", 0.6, 1 - seven, 1 + seven),
    )
    assert table[5][1] == near("posterize", 0.3, 5, 5)
    assert table[20][0] == near("solarize", 0.4, 255 * 4 / 9, 255 * 4 / 9)


def test_the_pairs_of_svhn_are_the_published_ones():
    table = policies.load_policy("svhn")
    assert len(table) == 25
    shear = 0.3 * 4 / 9
    assert table[0] == (near("shear_x", 0.9, -shear, shear), near("invert", 0.2, 0, 0))
    assert table[12] == (
        near("equalize", 0.9, 0, 0),
        near("translate_y", 0.6, -9 / 32, 9 / 32),
    )


@pytest.mark.parametrize("policy", ["cifar10", "svhn"])
def test_every_operation_is_there_to_be_applied(policy):
    known = {"identity", *ops.POINTWISE, *ops.GEOMETRIC}
    assert set(policies.operation_names(policy)) <= known
    assert policies.operation_names(policy)[0] == "identity"
    assert policies.load_policy("random") == ()


def torchvisions(policy):
    from torchvision.transforms.autoaugment import AutoAugment, AutoAugmentPolicy

    published = AutoAugment(AutoAugmentPolicy(policy))
    return published.policies, published._augmentation_space(10, (32, 32))


def by_torchvision(images, step, space, sign):
    from torchvision.transforms import InterpolationMode
    from torchvision.transforms.autoaugment import _apply_op

    name, _, level = step
    levels, signed = space[name]
    magnitude = 0.0 if level is None else float(levels[level])
    if signed:  # our shift says where a pixel comes from, torchvision's where it goes
        magnitude *= -sign if name.startswith("Translate") else sign
    return _apply_op(images, name, magnitude, InterpolationMode.BILINEAR, None)


def draws(pair, applied, signs, rows=2):
    view = View(ratio=(1.0, 1.0), policy="cifar10")
    u = torch.rand(rows, count_uniforms(view))
    numbers = [(pair + 0.5) / 25]
    for on, sign in zip(applied, signs, strict=True):
        numbers += [0.0 if on else 0.999, 0.1 if sign < 0 else 0.9]
    u[:, 5:10] = torch.tensor(numbers)
    return u


def compare(found, expected):
    """Differences in grey levels where neither is black, and how often just one of them is."""
    here, there = (found > 0).any(dim=1), (expected > 0).any(dim=1)
    levels = (found - expected).abs().amax(dim=1) * 255
    return levels[here & there], (here != there).float().mean()


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("policy", ["cifar10", "svhn"])
def test_each_operation_alone_is_torchvisions(policy, place, sign):
    view = View(ratio=(1.0, 1.0), policy=policy)
    table, space = torchvisions(policy)
    for number, pair in enumerate(table):
        if pair[place][1] == 0:
            continue  # never applied
        on = (place == 0, place == 1)
        found = render_one(REAL, view, False, draws(number, on, (sign, sign)))
        expected = by_torchvision(REAL, pair[place], space, sign).float() / 255
        levels, outside = compare(found, expected)
        if pair[place][0] in MOVING:  # torchvision blends with black on the border
            assert levels.quantile(0.93) < 2, pair[place]
            assert outside < 0.05, pair[place]
        else:
            assert (found - expected).abs().max() * 255 < 2, pair[place]


@pytest.mark.parametrize("policy", ["cifar10", "svhn"])
def test_the_second_operation_is_applied_to_the_result_of_the_first(policy):
    view = View(ratio=(1.0, 1.0), policy=policy)
    table, space = torchvisions(policy)
    for number, (first, second) in enumerate(table):
        if 0 in (first[1], second[1]):
            continue
        if first[0] in ("Contrast", "Equalize", "AutoContrast") and second[0] in MOVING:
            continue  # ours moves first, and these see the black that comes in
        found = render_one(REAL, view, False, draws(number, (True, True), (1, -1)))
        once = by_torchvision(REAL, first, space, 1)
        expected = by_torchvision(once, second, space, -1).float() / 255
        levels, _ = compare(found, expected)
        assert levels.median() < 2, (first, second)


@pytest.mark.parametrize("policy", ["cifar10", "svhn"])
def test_each_image_draws_its_own_pair_chances_and_signs(policy):
    table, names = policies.load_policy(policy), policies.operation_names(policy)
    rows = 50_000
    u = torch.rand(rows, policies.N_UNIFORMS, generator=torch.Generator().manual_seed(0))
    choices = policies.choose_operations(table, names, u)
    for place, (which, magnitude) in enumerate(choices):
        for name in names[1:]:
            mine = [pair[place] for pair in table if pair[place].name == name]
            share = sum(step.chance for step in mine) / 25
            chosen = which == names.index(name)
            assert abs(chosen.float().mean() - share) < 0.01
            allowed = torch.tensor([value for step in mine for value in step[2:]] or [0.0])
            distances = (magnitude[chosen][:, None] - allowed).abs().amin(dim=1)
            assert (distances < 1e-6).all()
            if share and all(step.minus != step.plus for step in mine):
                middle = 1.0 if name in policies.FACTOR_OPERATIONS else 0.0
                assert abs((magnitude[chosen] < middle).float().mean() - 0.5) < 0.05
    applied = (choices[0][0] > 0) & (choices[1][0] > 0)
    expected = sum(first.chance * second.chance for first, second in table) / 25
    assert abs(applied.float().mean() - expected) < 0.01


def test_torchvision_is_read_at_first_use_only():
    assert policies.load_policy("cifar10") is policies.load_policy("cifar10")
