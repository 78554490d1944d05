"""The images to look at first: each as a small picture with what is known of it."""

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from concont.errors import printable

if TYPE_CHECKING:
    from concont.answers.resolution import Resolution

SIDE = 96  # pixels of a picture's longer side, at most
SMALL = 32  # up to here a picture keeps every pixel, which JPEG would blur
QUALITY = 80
Pixels = NDArray[np.uint8]
Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Card:
    """One image of the review list."""

    rank: int  # 1: look here first
    name: str
    label: str  # as resolved
    predicted: str | None  # the likeliest of all classes, where that is another one
    candidates: tuple[str, ...]  # empty: it has no candidate set
    probability: float
    score: float
    confident: bool | None
    overruled: bool
    picture: str | None  # a data URI

    @property
    def words(self) -> str:
        """What a search looks at."""
        named = (self.name, self.label, self.predicted or "", *self.candidates)
        return " ".join(named).casefold()


def list_rows(review: Rows, most: int) -> Rows:
    """The rows to look at first, by their rank (N,)."""
    rows: Rows = np.argsort(review, kind="stable")[:most]
    return rows


def make_cards(resolution: "Resolution", rows: Rows, images: Any) -> list[Card]:
    """A card for each of these rows; images (N, H, W, channels) may lie on disk."""
    return [_make_card(resolution, row, make_picture(images[row])) for row in rows.tolist()]


def make_picture(pixels: Pixels) -> str | None:
    """An image (H, W, channels) as a data URI, no larger than `SIDE`; None: it is no image."""
    if pixels.ndim != 3 or pixels.dtype != np.uint8:
        return None
    image = Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)
    image.thumbnail((SIDE, SIDE))
    small, buffer = max(image.size) <= SMALL, io.BytesIO()
    if small:
        image.save(buffer, "PNG", optimize=True)
    else:
        image.save(buffer, "JPEG", quality=QUALITY, optimize=True)
    kind = "png" if small else "jpeg"
    return f"data:image/{kind};base64,{base64.b64encode(buffer.getvalue()).decode()}"


def _make_card(resolution: "Resolution", row: int, picture: str | None) -> Card:
    names = [printable(name) for name in resolution.classes]
    label, predicted = int(resolution.label[row]), int(resolution.predicted[row])
    sure = resolution.confident
    return Card(
        rank=int(resolution.review[row]),
        name=printable(resolution.images[row]),
        label=names[label],
        predicted=None if predicted == label else names[predicted],
        candidates=_name_candidates(resolution.candidates[row], names),
        probability=float(resolution.probability[row]),
        score=float(resolution.score[row]),
        confident=None if sure is None else bool(sure[row]),
        overruled=bool(resolution.overruled[row]),
        picture=picture,
    )


def _name_candidates(chosen: NDArray[np.bool_], names: Sequence[str]) -> tuple[str, ...]:
    if chosen.all():
        return ()
    return tuple(names[k] for k in np.flatnonzero(chosen).tolist())
