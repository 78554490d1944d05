"""What to begin with where the data has no recipe of its own: by its size, and by the device."""

from collections.abc import Mapping, Sequence
from typing import Any

from concont.data.own_data import OwnData
from concont.types import Plain

STEPS = {"own": 10_000, "own-cpu": 2_000, "features": 2_000}  # of a run, about
LARGE = 96  # pixels: the side above which a GPU of common size holds a quarter of the batch
MOST_EPOCHS = 2_000
EVALUATIONS = 20  # over a run, about: points of its curves


def choose_recipe(data: OwnData, device: str) -> str:
    """The recipe for data on a kind of device, `cpu` or `cuda`."""
    if data.of_features:
        return "features"
    return "own" if device == "cuda" else "own-cpu"


def complete_recipe(
    names: Sequence[str], data: OwnData, usual: Mapping[str, Any], said: Mapping[str, Any]
) -> Plain:
    """What such a recipe leaves to the data: epochs, batches, the size of image files.

    names: of the recipe and of those that it extends, root first. usual, said: their settings of
    the section `train`, and the user's own, which these figures must fit.
    """
    known = [name for name in names if name in STEPS]
    if not known:
        return _size_of_files(data)
    name = known[-1]
    large = name == "own" and max(data.shape) > LARGE
    batch = said.get("batch_size") or usual["batch_size"] // (4 if large else 1)
    steps = max(1, data.rows // batch)
    epochs = said.get("epochs") or min(MOST_EPOCHS, max(1, round(STEPS[name] / steps)))
    every = max(1, epochs // EVALUATIONS)
    plain: Plain = {
        "train": {"epochs": epochs, "evaluate_every": every, "batch_size": batch},
        **_size_of_files(data),
    }
    return {**plain, "optimizer": {"lr": 0.03}} if large else plain


def _size_of_files(data: OwnData) -> Plain:
    return {"data": {"image_size": data.shape[0]}} if data.from_files else {}
