"""The plain way's views: torchvision's pieces in the order of our own."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from concont.bench import plain_views
from concont.bench.plain_views import (
    PlainViewsDataset,
    make_loader,
    make_transform,
    time_plain_views_ms,
)
from concont.config.resolve import resolve
from concont.runs.view_settings import ALL_OPERATIONS, NAMED_VIEWS, View, Views

NAMES = ("weak", "strong", "strong2")
SIZE = (18, 21)
WHOLE = {"ratio": (21 / 18, 21 / 18)}  # with all of the area: the image as it is
NAMED = [(kind, name) for kind, variants in NAMED_VIEWS.items() for name in variants]


def random_images(count=6, channels=3):
    shape = (count, *SIZE, channels)
    return np.random.RandomState(0).randint(0, 256, shape).astype(np.uint8)


def one_image(channels=3):
    return torch.from_numpy(random_images(1, channels)[0]).permute(2, 0, 1)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(("kind", "name"), NAMED)
def test_each_view_is_an_image_of_the_same_size(channels, kind, name):
    images, named = random_images(channels=channels), Views(**{kind: NAMED_VIEWS[kind][name]})
    for row, views in map(PlainViewsDataset(images, named, NAMES).__getitem__, range(6)):
        assert row in range(6)
        assert tuple(views) == NAMES
        for view in views.values():
            assert (view.shape, view.dtype) == ((channels, *SIZE), torch.float32)
            assert 0 <= view.min() <= view.max() <= 1
            assert view.std() > 0


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("name", [*ALL_OPERATIONS, "invert"])
def test_each_operation_has_a_transform_that_changes_the_image(name, channels):
    image = one_image(channels=channels) // 2 + 30
    view = View(operations=(name,), draws=1, **WHOLE)
    drawn = torch.stack([make_transform(view, False, SIZE)(image) for _ in range(4)])
    assert (drawn.shape, drawn.dtype) == ((4, channels, *SIZE), torch.float32)
    assert 0 <= drawn.min() <= drawn.max() <= 1
    same = name == "identity" or (name == "color" and channels == 1)  # no colour, none to change
    assert all(torch.allclose(one, image / 255) for one in drawn) == same


@pytest.mark.parametrize(
    ("kind", "name", "pieces"),
    [
        ("weak", "pad4", "RandomCrop RandomHorizontalFlip ToDtype"),
        (
            "weak",
            "pico",
            "RandomResizedCrop RandomHorizontalFlip RandomApply RandomGrayscale ToDtype",
        ),
        (
            "strong",
            "pico",
            "RandomResizedCrop RandomHorizontalFlip RandAugment ToDtype RandomErasing",
        ),
        ("strong", "dpll", "RandomCrop RandomHorizontalFlip RandomErasing AutoAugment ToDtype"),
    ],
)
def test_the_pieces_come_in_the_order_of_our_own_views(kind, name, pieces):
    made = make_transform(NAMED_VIEWS[kind][name], True, SIZE).transforms
    assert [type(piece).__name__ for piece in made] == pieces.split()


def test_a_padded_view_is_the_image_moved_by_whole_pixels_its_border_reflected():
    image, (height, width) = one_image(), SIZE
    padded = np.pad(image.numpy(), ((0, 0), (2, 2), (2, 2)), mode="reflect") / np.float32(255)
    places = list(itertools.product(range(5), repeat=2))
    moved = torch.stack(
        [torch.from_numpy(padded[:, y : y + height, x : x + width]) for y, x in places]
    )
    transform = make_transform(View(pad=2), False, SIZE)
    found = [(moved - transform(image)).abs().amax(dim=(1, 2, 3)) for _ in range(100)]
    assert torch.stack(found).amin(dim=1).max() < 1e-6
    assert len({int(distance.argmin()) for distance in found}) > 15


@pytest.mark.parametrize("place", range(4))
def test_each_jitter_changes_what_it_names_and_only_with_its_chance(place):
    image = one_image() // 2 + 30
    spread = tuple(0.4 if k == place else 0.0 for k in range(4))
    still, always = (
        make_transform(View(jitter=spread, jitter_chance=chance, **WHOLE), False, SIZE)
        for chance in (0.0, 1.0)
    )
    assert torch.allclose(still(image), image / 255)
    drawn = [always(image) for _ in range(4)]
    assert not any(torch.allclose(one, image / 255, atol=0.005) for one in drawn)
    grey = torch.tensor([0.2989, 0.587, 0.114])
    means = [(one.mean(dim=(1, 2)) @ grey).item() for one in (image / 255, *drawn)]
    if place in (1, 2):  # about the mean, about the grey: the whole is as bright as before
        assert means == pytest.approx([means[0]] * 5, abs=0.005)
    if place == 0:
        assert np.std(means) > 0.01


def test_colour_is_lost_with_its_chance():
    image = one_image()
    transform = make_transform(View(grey_chance=0.5, **WHOLE), False, SIZE)
    drawn = [transform(image) for _ in range(40)]
    grey = sum(torch.equal(one[0], one[1]) and torch.equal(one[1], one[2]) for one in drawn)
    assert grey + sum(torch.allclose(one, image / 255) for one in drawn) == 40
    assert 8 <= grey <= 32


@pytest.mark.parametrize("policy", ["cifar10", "svhn"])
def test_a_policy_is_torchvisions_of_that_name(policy):
    made = make_transform(View(policy=policy, **WHOLE), False, SIZE).transforms[1]
    assert made.policy.value == policy
    image = one_image()
    drawn = [made(image) for _ in range(20)]
    assert sum(not torch.equal(one, image) for one in drawn) > 5


def test_a_hole_before_the_policy_is_in_no_other_view():
    views = Views(
        flip=False, weak=View(**WHOLE), strong=View(policy="svhn", cutout=(9, 9), **WHOLE)
    )
    rows = PlainViewsDataset(random_images(), views, ("strong", "weak"))
    for row in range(6):
        image = torch.from_numpy(rows.images[row]).permute(2, 0, 1)
        assert torch.allclose(rows[row][1]["weak"], image / 255)


def test_a_magnitude_of_nothing_changes_nothing():
    still = View(
        operations=tuple(n for n in ALL_OPERATIONS if n not in ("autocontrast", "equalize")),
        draws=3,
        rotate=0.0,
        shear=0.0,
        translate=0.0,
        enhance=(1.0, 1.0),
        posterize=(8.0, 8.0),
        solarize=(256.0, 256.0),
        **WHOLE,
    )
    image = one_image().clamp(max=254)  # torchvision's highest threshold turns 255 over
    transform = make_transform(still, False, SIZE)
    for _ in range(30):
        assert torch.allclose(transform(image), image / 255, atol=1.01 / 255)


def test_the_hole_is_a_grey_square_of_the_side_asked_for():
    view = View(cutout=(5.0, 5.0))
    drawn = make_transform(view, False, SIZE)(one_image().clamp(max=100))
    assert (drawn == 0.5).sum() == 5 * 5 * 3


def test_a_hole_as_large_as_the_image_leaves_some_of_it():
    view = View(cutout=(40.0, 40.0))
    drawn = make_transform(view, False, SIZE)(one_image().clamp(max=100))
    assert (drawn == 0.5).sum() == 17 * 17 * 3


def test_the_mirror_image_is_drawn_only_where_asked_for():
    image = one_image()
    for flip in (False, True):
        transform = make_transform(View(**WHOLE), flip, SIZE)
        drawn = [transform(image) for _ in range(20)]
        mirrored = sum(torch.allclose(one, image.flip(2) / 255) for one in drawn)
        assert mirrored + sum(torch.allclose(one, image / 255) for one in drawn) == 20
        assert (mirrored > 0) == flip


def test_images_stay_as_they_are_even_where_they_cannot_be_written_to():
    images, before = random_images(), random_images()
    images.flags.writeable = False
    rows = PlainViewsDataset(images, Views(), NAMES)
    assert len([rows[row] for row in range(len(rows))]) == 6
    assert np.array_equal(images, before)


def test_two_draws_of_an_image_differ():
    rows = PlainViewsDataset(random_images(), Views(), NAMES)
    (_, first), (_, second) = rows[0], rows[0]
    assert not torch.equal(first["strong"], first["strong2"])
    assert all(not torch.equal(first[name], second[name]) for name in NAMES)


def test_an_epoch_holds_each_row_once_in_an_order_of_its_own():
    batches = make_loader(random_images(24), Views(), ("weak",), 8, 0, False)
    epochs = [torch.cat([index for index, _ in batches]).tolist() for _ in range(2)]
    assert sorted(epochs[0]) == sorted(epochs[1]) == list(range(24))
    assert epochs[0] != epochs[1]


def test_a_last_short_batch_is_dropped_and_steps_go_beyond_an_epoch():
    images = random_images(10)
    assert [len(index) for index, _ in make_loader(images, Views(), ("weak",), 4, 0, False)] == [
        4,
        4,
    ]
    many = list(make_loader(images, Views(), ("weak",), 4, 0, False, steps=5))
    assert len(many) == 5
    assert sorted(torch.cat([index for index, _ in many])[:10].tolist()) == list(range(10))


def test_workers_serve_the_rows_with_draws_of_their_own():
    images = np.repeat(random_images(1), 8, axis=0)
    index, views = zip(*make_loader(images, Views(), ("weak",), 4, 2, False), strict=True)
    assert sorted(torch.cat(index).tolist()) == list(range(8))
    drawn = torch.cat([batch["weak"] for batch in views])
    pairs = itertools.combinations(drawn, 2)
    assert not any(torch.equal(one, other) for one, other in pairs)


@pytest.mark.parametrize("workers", [0, 1])
def test_the_loader_is_timed(workers, toy_config):
    settings = resolve(toy_config)
    assert 0 < time_plain_views_ms(random_images(16), settings, 4, workers, 2) < 10_000


@pytest.mark.parametrize(("workers", "batches", "made"), [(0, 4, 3 + 4), (4, 10, 12 + 12)])
def test_views_are_timed_in_whole_rounds_after_the_first(
    monkeypatch, toy_config, workers, batches, made
):
    now, asked = [0.0], []

    def slow_at_first(*args, pin, steps):
        asked.append((*args, steps))
        for number in range(steps):
            now[0] += 9.0 if number < 3 * max(workers, 1) else 0.02
            yield None

    monkeypatch.setattr(plain_views, "make_loader", slow_at_first)
    monkeypatch.setattr(plain_views, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    images, settings = random_images(4), resolve(toy_config)
    assert time_plain_views_ms(images, settings, 16, workers, batches) == pytest.approx(20)
    assert asked == [(images, settings.views, NAMES, 16, workers, made)]
