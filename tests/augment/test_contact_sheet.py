import numpy as np
import pytest

from concont.augment.contact_sheet import (
    DRAWS,
    MARGIN,
    TILE_HEIGHT,
    TITLE_WIDTH,
    draw_contact_sheet,
)
from concont.runs.view_settings import NAMED_VIEWS, View, Views

IMAGES = np.random.RandomState(0).randint(0, 256, (20, 8, 8, 3)).astype(np.uint8)


@pytest.mark.parametrize("channels", [1, 3])
def test_the_sheet_has_a_row_for_each_draw_and_a_column_for_each_image(channels):
    sheet = draw_contact_sheet(IMAGES[..., :channels], Views(), count=4, seed=1)
    rows = 1 + 3 * DRAWS  # the image, then weak, measured and pico
    assert sheet.height == rows * (TILE_HEIGHT + MARGIN)
    assert sheet.width == TITLE_WIDTH + 4 * (TILE_HEIGHT + MARGIN)


def test_the_first_row_shows_the_images_themselves():
    pixels = np.asarray(draw_contact_sheet(IMAGES, Views(), count=20, seed=1))
    step = TILE_HEIGHT // 8
    shown = {
        pixels[step // 2, TITLE_WIDTH + x * (TILE_HEIGHT + MARGIN) + step // 2].tobytes()
        for x in range(20)
    }
    assert shown == {image[0, 0].tobytes() for image in IMAGES}


def test_the_same_seed_draws_the_same_sheet():
    one, two, other = (draw_contact_sheet(IMAGES, Views(), 3, seed).tobytes() for seed in (1, 1, 2))
    assert one == two
    assert one != other


def test_a_recipes_own_strong_view_is_shown_too():
    own = Views(strong=View(crop=(0.9, 1.0)))
    assert draw_contact_sheet(IMAGES, own, 3, 1).height == (1 + 4 * DRAWS) * (TILE_HEIGHT + MARGIN)


@pytest.mark.parametrize("channels", [1, 3])
def test_views_of_other_methods_are_shown_as_this_recipes(channels):
    views = Views(weak=NAMED_VIEWS["weak"]["pico"], strong=NAMED_VIEWS["strong"]["dpll"])
    sheet = draw_contact_sheet(IMAGES[..., :channels], views, 3, 1)
    assert sheet.height == (1 + 4 * DRAWS) * (TILE_HEIGHT + MARGIN)
