"""The views of the plain way: torchvision's transforms, image by image, in a DataLoader.

With `plain_step`, what a competent engineer would write without this package.
"""

import time
from itertools import islice
from math import atan, degrees
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, RandomSampler

from concont.data.sources import Images
from concont.runs.settings import Settings
from concont.runs.view_settings import ALL_OPERATIONS, View, Views

if TYPE_CHECKING:
    from torchvision.transforms import v2

IndexedViews = tuple[int, dict[str, Tensor]]
PREFETCH = 4  # batches that each worker makes ahead
N_LEVELS = 11  # magnitudes of an operation for which torchvision has only a fixed one


def make_transform(view: View, flip: bool, size: tuple[int, int]) -> "v2.Transform":
    """A view of one uint8 image (channels, H, W) as float32 in [0, 1], by torchvision's pieces.

    The same kind of view as `concont.augment.views` makes, but not the same numbers: every piece
    resamples and rounds to whole values by itself; a list of all 14 operations is torchvision's
    RandAugment, with its own fixed magnitudes instead of the view's ranges; otherwise sharpness,
    solarize and posterize have a grid of magnitudes, and shears are uniform in the angle; the
    jitter's four changes come in any order; the hole lies wholly inside the image, and its area,
    not its side, is uniform.
    """
    from torchvision.transforms import v2

    scale = v2.ToDtype(torch.float32, scale=True)
    first = [*_make_crop_and_flip(view, flip, size), *_make_colours(view)]
    if view.policy == "random":
        hole = _make_hole(view, size, grey=0.5)
        return v2.Compose([*first, *_make_operations(view), scale, *hole])
    hole = _make_hole(view, size, grey=128)
    # A policy sees the hole, as in our own views.
    return v2.Compose([*first, *hole, *_make_operations(view), scale])


def _make_crop_and_flip(view: View, flip: bool, size: tuple[int, int]) -> list[Any]:
    from torchvision.transforms import v2

    crop = (
        v2.RandomCrop(size, padding=view.pad_in_pixels(min(size)), padding_mode="reflect")
        if view.pad
        else v2.RandomResizedCrop(size, scale=view.crop, ratio=view.ratio)
    )
    return [crop, v2.RandomHorizontalFlip()] if flip else [crop]


def _make_colours(view: View) -> list[Any]:
    from torchvision.transforms import v2

    jitter = [v2.RandomApply([v2.ColorJitter(*view.jitter)], p=view.jitter_chance)]
    grey = [v2.RandomGrayscale(view.grey_chance)]
    return (jitter if any(view.jitter) else []) + (grey if view.grey_chance > 0 else [])


def _make_operations(view: View) -> list[Any]:
    from torchvision.transforms import AutoAugmentPolicy, InterpolationMode, v2

    bilinear = InterpolationMode.BILINEAR
    if view.policy != "random":
        return [v2.AutoAugment(AutoAugmentPolicy(view.policy), interpolation=bilinear)]
    if not view.draws:
        return []
    if sorted(view.operations) == sorted(ALL_OPERATIONS):
        return [v2.RandAugment(num_ops=view.draws, interpolation=bilinear)]
    return [v2.RandomChoice([_make_operation(name, view) for name in view.operations])] * view.draws


def _make_hole(view: View, size: tuple[int, int], grey: float) -> list[Any]:
    from torchvision.transforms import v2

    if view.cutout[1] == 0:
        return []
    largest = min(size) - 1  # RandomErasing leaves an image alone if the hole is no smaller
    sides = view.cutout_in_pixels(min(size))
    areas = [min(side, largest) ** 2 / (size[0] * size[1]) for side in sides]
    return [v2.RandomErasing(p=1, scale=areas, ratio=(1, 1), value=grey)]


def _make_operation(name: str, view: View) -> Any:
    """torchvision's transform for one operation, its magnitude drawn from the view's range."""
    from torchvision.transforms import InterpolationMode, v2

    bilinear = InterpolationMode.BILINEAR
    shear = degrees(atan(view.shear))

    def choose_level(transform: Any, low: float, high: float) -> Any:
        levels = torch.linspace(low, high, N_LEVELS).tolist()
        return v2.RandomChoice([transform(level, p=1) for level in levels])

    bits = range(round(view.posterize[0]), round(view.posterize[1]) + 1)
    makers = {
        "identity": v2.Identity,
        "autocontrast": lambda: v2.RandomAutocontrast(p=1),
        "equalize": lambda: v2.RandomEqualize(p=1),
        "rotate": lambda: v2.RandomRotation(view.rotate, interpolation=bilinear),
        "posterize": lambda: v2.RandomChoice([v2.RandomPosterize(n, p=1) for n in bits]),
        "solarize": lambda: choose_level(v2.RandomSolarize, *(min(x, 255) for x in view.solarize)),
        "color": lambda: v2.ColorJitter(saturation=view.enhance),
        "contrast": lambda: v2.ColorJitter(contrast=view.enhance),
        "brightness": lambda: v2.ColorJitter(brightness=view.enhance),
        "sharpness": lambda: choose_level(v2.RandomAdjustSharpness, *view.enhance),
        "shear_x": lambda: v2.RandomAffine(0, shear=(-shear, shear), interpolation=bilinear),
        "shear_y": lambda: v2.RandomAffine(0, shear=(0, 0, -shear, shear), interpolation=bilinear),
        "translate_x": lambda: v2.RandomAffine(
            0, translate=(view.translate, 0), interpolation=bilinear
        ),
        "translate_y": lambda: v2.RandomAffine(
            0, translate=(0, view.translate), interpolation=bilinear
        ),
        "invert": lambda: v2.RandomInvert(p=1),
    }
    return makers[name]()


class PlainViewsDataset(Dataset[IndexedViews]):
    """Rows of uint8 images (N, H, W, channels): item i is (i, {view name: one draw of it})."""

    def __init__(self, images: Images, views: Views, names: tuple[str, ...]) -> None:
        self.images = images
        kinds = {name: getattr(views, name.rstrip("0123456789")) for name in names}
        size = (images.shape[1], images.shape[2])
        self.transforms = {
            name: make_transform(view, views.flip, size) for name, view in kinds.items()
        }

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, row: int) -> IndexedViews:
        # Laid out channels last, as in memory: torchvision's faster way to resize. A copy, since
        # PyTorch warns of arrays that cannot be written to, such as a mapped file's.
        image = torch.from_numpy(np.array(self.images[row])).permute(2, 0, 1)
        return row, {name: transform(image) for name, transform in self.transforms.items()}


def make_loader(
    images: Images,
    views: Views,
    names: tuple[str, ...],
    batch_size: int,
    workers: int,
    pin: bool,
    steps: int | None = None,
) -> DataLoader[IndexedViews]:
    """Shuffled batches (index (B,), {view name: (B, channels, H, W)}); a last short one is dropped.

    `steps` asks for that many batches in one go, pass after pass, instead of an epoch.
    """
    dataset = PlainViewsDataset(images, views, names)
    n_samples = len(dataset) if steps is None else steps * batch_size
    return DataLoader(
        dataset,
        batch_size=batch_size,
        sampler=RandomSampler(dataset, num_samples=n_samples),
        num_workers=workers,
        pin_memory=pin,
        drop_last=True,
        persistent_workers=workers > 0,
        prefetch_factor=PREFETCH if workers else None,
    )


def time_plain_views_ms(
    images: Images, settings: Settings, batch_size: int, workers: int, n_batches: int
) -> float:
    """Milliseconds for a batch of all the method's views from the loader, in steady state.

    The mean over `n_batches`, made up to whole rounds of the workers, after their first rounds.
    """
    in_parallel = max(workers, 1)
    n_warm_up, n_timed = 3 * in_parallel, -(-n_batches // in_parallel) * in_parallel
    batches = iter(
        make_loader(
            images,
            settings.views,
            settings.network_method.views,
            batch_size,
            workers,
            pin=torch.cuda.is_available(),
            steps=n_warm_up + n_timed,
        )
    )
    for _ in islice(batches, n_warm_up):
        pass
    began = time.perf_counter()
    for _ in batches:
        pass
    return (time.perf_counter() - began) / n_timed * 1000
