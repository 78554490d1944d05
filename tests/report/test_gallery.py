import base64
import io

import numpy as np
import pytest
from PIL import Image

from concont.report.gallery import SIDE, list_rows, make_cards, make_picture
from made_runs import make_resolution


def read(uri):
    kind, data = uri.removeprefix("data:image/").split(";base64,")
    return kind, Image.open(io.BytesIO(base64.b64decode(data)))


@pytest.mark.parametrize("channels", [1, 3])
def test_a_small_image_keeps_every_pixel(channels):
    pixels = np.random.RandomState(0).randint(0, 256, (8, 12, channels), np.uint8)
    kind, image = read(make_picture(pixels))
    assert kind == "png"
    assert np.array_equal(np.asarray(image).reshape(pixels.shape), pixels)


def test_a_large_image_is_made_small():
    pixels = np.random.RandomState(0).randint(0, 256, (400, 200, 3), np.uint8)
    uri = make_picture(pixels)
    kind, image = read(uri)
    assert (kind, image.size) == ("jpeg", (SIDE // 2, SIDE))
    assert len(uri) < 8000


def test_features_have_no_picture():
    assert make_picture(np.zeros(16, np.float32)) is None


def test_cards_come_by_rank_and_say_what_is_known():
    resolution = make_resolution(n=60)
    rows = list_rows(resolution.review, 7)
    assert rows.tolist() == [0, 10, 20, 30, 40, 50, 1]
    images = np.zeros((60, 8, 8, 1), np.uint8)
    cards = make_cards(resolution, rows, images)
    assert [card.rank for card in cards] == list(range(1, 8))
    first, last = cards[0], cards[-1]
    assert (first.name, first.label, first.predicted) == ("0000.png", "cat", "dog")
    assert (first.candidates, first.confident) == (("cat", "dog"), False)
    assert (last.overruled, last.predicted, last.confident) == (True, None, True)
    assert cards[3].candidates == ()  # row 30 has no set
    assert first.words == "0000.png cat dog cat dog"


def test_only_the_listed_images_are_read():
    asked = []

    class Images:
        def __getitem__(self, row):
            asked.append(row)
            return np.zeros((8, 8, 1), np.uint8)

    make_cards(make_resolution(n=60), np.array([4, 2]), Images())
    assert asked == [4, 2]
