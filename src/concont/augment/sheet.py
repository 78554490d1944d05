"""A contact sheet: the same images under each kind of view, for people to look at."""

from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from concont.augment.views import draw, render
from concont.rng import frozen_stream, torch_stream
from concont.runs.settings import STRONG_VARIANTS, Views

DRAWS = 3  # rows a kind of view
HEIGHT = 96  # of a tile, in pixels
MARGIN = 4


def contact_sheet(images: NDArray[np.uint8], views: Views, count: int, seed: int) -> Image.Image:
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
        stream = torch_stream(seed, "sheet", title)
        for number in range(DRAWS):
            draws = draw(settings, (kind,), len(batch), stream)
            rows.append(("" if number else title, render(batch, settings, draws)[kind]))
    return _paste(rows)


def _paste(rows: list[tuple[str, torch.Tensor]]) -> Image.Image:
    tiles = [[_tile(image) for image in batch] for _, batch in rows]
    width, title_width = tiles[0][0].width, 190
    size = (title_width + len(tiles[0]) * (width + MARGIN), len(rows) * (HEIGHT + MARGIN))
    sheet = Image.new("RGB", size, "white")
    pen, font = ImageDraw.Draw(sheet), ImageFont.load_default(size=18)
    for y, ((title, _), line) in enumerate(zip(rows, tiles, strict=True)):
        pen.text((8, y * (HEIGHT + MARGIN) + HEIGHT // 2 - 10), title, fill="black", font=font)
        for x, tile in enumerate(line):
            sheet.paste(tile, (title_width + x * (width + MARGIN), y * (HEIGHT + MARGIN)))
    return sheet


def _tile(image: torch.Tensor) -> Image.Image:
    pixels = (image.clamp(0, 1) * 255).round().byte().permute(1, 2, 0).numpy()  # (H, W, channels)
    picture = Image.fromarray(pixels.squeeze(2) if pixels.shape[2] == 1 else pixels).convert("RGB")
    width = round(HEIGHT * picture.width / picture.height)
    return picture.resize((width, HEIGHT), Image.Resampling.NEAREST)
