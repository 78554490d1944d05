"""A contact sheet: the same images under each kind of view, for people to look at."""

from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from concont.augment.views import draw_uniforms, render_views
from concont.rng import frozen_stream, torch_stream
from concont.runs.view_settings import STRONG_VARIANTS, Views

DRAWS = 3  # rows for each kind of view
TILE_HEIGHT = 96  # pixels
TITLE_WIDTH = 190
MARGIN = 4


def draw_contact_sheet(
    images: NDArray[np.uint8], views: Views, count: int, seed: int
) -> Image.Image:
    """Originals, then weak views, then each named strong view, a row a draw.

    images (N, H, W, channels); `count` of them are chosen by the seed.
    """
    chosen = np.sort(frozen_stream(seed, "sheet").permutation(len(images))[:count])
    batch = torch.from_numpy(images[chosen]).permute(0, 3, 1, 2)
    rows = [("image", batch.float() / 255)]
    kinds = {"weak": ("weak", views)}
    for name, variant in STRONG_VARIANTS.items():
        kinds[f"strong: {name}"] = ("strong", replace(views, strong=variant))
    if views.strong not in STRONG_VARIANTS.values():
        kinds["strong: this recipe's"] = ("strong", views)
    for title, (kind, settings) in kinds.items():
        stream = torch_stream(seed, "sheet", title)  # its own: another kind changes none of these
        for number in range(DRAWS):
            uniforms = draw_uniforms(settings, (kind,), len(batch), stream)
            rendered = render_views(batch, settings, uniforms)[kind]
            rows.append(("" if number else title, rendered))
    return _paste_rows(rows)


def _paste_rows(rows: list[tuple[str, torch.Tensor]]) -> Image.Image:
    tiles = [[_make_tile(image) for image in batch] for _, batch in rows]
    column, row = tiles[0][0].width + MARGIN, TILE_HEIGHT + MARGIN
    sheet = Image.new("RGB", (TITLE_WIDTH + len(tiles[0]) * column, len(rows) * row), "white")
    pen, font = ImageDraw.Draw(sheet), ImageFont.load_default(size=18)
    for y, ((title, _), line) in enumerate(zip(rows, tiles, strict=True)):
        pen.text((8, y * row + TILE_HEIGHT // 2 - 10), title, fill="black", font=font)
        for x, tile in enumerate(line):
            sheet.paste(tile, (TITLE_WIDTH + x * column, y * row))
    return sheet


def _make_tile(image: torch.Tensor) -> Image.Image:
    pixels = (image.clamp(0, 1) * 255).round().byte().permute(1, 2, 0).numpy()  # (H, W, channels)
    picture = Image.fromarray(pixels.squeeze(2) if pixels.shape[2] == 1 else pixels).convert("RGB")
    width = round(TILE_HEIGHT * picture.width / picture.height)
    return picture.resize((width, TILE_HEIGHT), Image.Resampling.NEAREST)  # pixels stay to be seen
