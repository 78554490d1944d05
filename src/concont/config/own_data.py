"""What to begin with where the data has no recipe of its own: by its size, and by the device."""

from dataclasses import dataclass

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


def complete_recipe(name: str, data: OwnData, asked: int | None = None) -> Plain:
    """What such a recipe leaves to the data: epochs, batches, the size of image files.

    asked: how many epochs the user wants, if that was said.
    """
    if name not in STEPS:
        return _size_of_files(data)
    large = name == "own" and max(data.shape) > LARGE
    batch = BATCH[name] // 4 if large else BATCH[name]
    steps = max(1, data.rows // batch)
    epochs = asked or min(MOST_EPOCHS, max(1, round(STEPS[name] / steps)))
    plain: Plain = {
        "train": {"epochs": epochs, "evaluate_every": max(1, epochs // 5), "batch_size": batch},
        **_size_of_files(data),
    }
    return {**plain, "optimizer": {"lr": 0.03}} if large else plain


def _size_of_files(data: OwnData) -> Plain:
    return {"data": {"image_size": data.shape[0]}} if data.from_files else {}
