"""What to begin with where the data has no recipe of its own: by its size, and by the device."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from concont.types import Plain

STEPS = {"own": 10_000, "own-cpu": 2_000}  # of a run, about
BATCH = {"own": 256, "own-cpu": 64}  # as in the recipes
LARGE = 96  # pixels: the side above which a GPU of common size holds a quarter of that batch
MOST_EPOCHS = 2_000


@dataclass(frozen=True)
class OwnData:
    """What must be known of the data: how many rows, and what one is like."""

    rows: int
    shape: tuple[int, ...]  # (H, W, channels), or (D,) of features
    from_files: bool = False  # images that are made the size that is asked for


def choose_recipe(device: str) -> str:
    """The recipe for a kind of device, `cpu` or `cuda`."""
    return "own" if device == "cuda" else "own-cpu"


def complete_recipe(names: Sequence[str], data: OwnData, train: Mapping[str, Any]) -> Plain:
    """What such a recipe leaves to the data: epochs, batches, the size of image files.

    names: of the recipe and of those that it extends, root first. train: the user's own settings of
    that section, which these figures must fit.
    """
    known = [name for name in names if name in STEPS]
    if not known:
        return _size_of_files(data)
    name = known[-1]
    large = name == "own" and max(data.shape) > LARGE
    batch = train.get("batch_size") or (BATCH[name] // 4 if large else BATCH[name])
    steps = max(1, data.rows // batch)
    epochs = train.get("epochs") or min(MOST_EPOCHS, max(1, round(STEPS[name] / steps)))
    plain: Plain = {
        "train": {"epochs": epochs, "evaluate_every": max(1, epochs // 5), "batch_size": batch},
        **_size_of_files(data),
    }
    return {**plain, "optimizer": {"lr": 0.03}} if large else plain


def _size_of_files(data: OwnData) -> Plain:
    return {"data": {"image_size": data.shape[0]}} if data.from_files else {}
