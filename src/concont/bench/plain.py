"""The plain way to take the same step: torchvision's transforms image by image, an eager network.

What a competent engineer would write without this package; the yardstick of `concont bench`.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from math import atan, degrees
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, RandomSampler

from concont.bench.clock import wait
from concont.data.sources import Images
from concont.nets.network import Network
from concont.runs.settings import ALL_OPERATIONS, Settings, View, Views
from concont.training.network_run import NetworkRun
from concont.training.step import Step
from concont.types import Batch

if TYPE_CHECKING:
    from torchvision.transforms import v2

Precision = Literal["float32", "bfloat16"]
Item = tuple[int, dict[str, Tensor]]
PREFETCH = 4  # batches that each worker makes ahead
LEVELS = 11  # magnitudes of an operation whose torchvision piece has a fixed one


def transforms_of(view: View, flip: bool, size: tuple[int, int]) -> "v2.Transform":
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
    first = [*_geometry(view, flip, size), *_colours(view)]
    if view.policy == "random":
        return v2.Compose([*first, *_operations(view), scale, *_hole(view, size, grey=0.5)])
    # A policy sees the hole, as in our own views.
    return v2.Compose([*first, *_hole(view, size, grey=128), *_operations(view), scale])


def _geometry(view: View, flip: bool, size: tuple[int, int]) -> list[Any]:
    from torchvision.transforms import v2

    crop = (
        v2.RandomCrop(size, padding=view.pad, padding_mode="reflect")
        if view.pad
        else v2.RandomResizedCrop(size, scale=view.crop, ratio=view.ratio)
    )
    return [crop, v2.RandomHorizontalFlip()] if flip else [crop]


def _colours(view: View) -> list[Any]:
    from torchvision.transforms import v2

    jitter = [v2.RandomApply([v2.ColorJitter(*view.jitter)], p=view.jitter_chance)]
    grey = [v2.RandomGrayscale(view.grey_chance)]
    return (jitter if any(view.jitter) else []) + (grey if view.grey_chance > 0 else [])


def _operations(view: View) -> list[Any]:
    from torchvision.transforms import AutoAugmentPolicy, InterpolationMode, v2

    bilinear = InterpolationMode.BILINEAR
    if view.policy != "random":
        return [v2.AutoAugment(AutoAugmentPolicy(view.policy), interpolation=bilinear)]
    if not view.draws:
        return []
    if sorted(view.operations) == sorted(ALL_OPERATIONS):
        return [v2.RandAugment(num_ops=view.draws, interpolation=bilinear)]
    return [v2.RandomChoice([_piece(name, view) for name in view.operations])] * view.draws


def _hole(view: View, size: tuple[int, int], grey: float) -> list[Any]:
    from torchvision.transforms import v2

    if view.cutout[1] == 0:
        return []
    largest = min(size) - 1  # RandomErasing leaves an image alone if the hole is no smaller
    areas = [min(side, largest) ** 2 / (size[0] * size[1]) for side in view.cutout]
    return [v2.RandomErasing(p=1, scale=areas, ratio=(1, 1), value=grey)]


def _piece(name: str, view: View) -> Any:
    """torchvision's transform for one operation, its magnitude drawn from the view's range."""
    from torchvision.transforms import InterpolationMode, v2

    bilinear = InterpolationMode.BILINEAR
    shear = degrees(atan(view.shear))

    def grid(piece: Any, low: float, high: float) -> Any:
        return v2.RandomChoice([piece(x, p=1) for x in torch.linspace(low, high, LEVELS).tolist()])

    bits = range(round(view.posterize[0]), round(view.posterize[1]) + 1)
    makers = {
        "identity": v2.Identity,
        "autocontrast": lambda: v2.RandomAutocontrast(p=1),
        "equalize": lambda: v2.RandomEqualize(p=1),
        "rotate": lambda: v2.RandomRotation(view.rotate, interpolation=bilinear),
        "posterize": lambda: v2.RandomChoice([v2.RandomPosterize(n, p=1) for n in bits]),
        "solarize": lambda: grid(v2.RandomSolarize, *(min(x, 255) for x in view.solarize)),
        "color": lambda: v2.ColorJitter(saturation=view.enhance),
        "contrast": lambda: v2.ColorJitter(contrast=view.enhance),
        "brightness": lambda: v2.ColorJitter(brightness=view.enhance),
        "sharpness": lambda: grid(v2.RandomAdjustSharpness, *view.enhance),
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


class PlainSet(Dataset[Item]):
    """Rows of uint8 images (N, H, W, channels): item i is (i, {view name: one draw of it})."""

    def __init__(self, images: Images, views: Views, names: tuple[str, ...]) -> None:
        self.images = images
        kinds = {name: getattr(views, name.rstrip("0123456789")) for name in names}
        size = (images.shape[1], images.shape[2])
        self.transforms = {
            name: transforms_of(view, views.flip, size) for name, view in kinds.items()
        }

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, row: int) -> Item:
        # Laid out channels last, as in memory: torchvision's faster way to resize. A copy, since
        # PyTorch warns of arrays that cannot be written to, such as a mapped file's.
        image = torch.from_numpy(np.array(self.images[row])).permute(2, 0, 1)
        return row, {name: transform(image) for name, transform in self.transforms.items()}


def loader(
    images: Images,
    views: Views,
    names: tuple[str, ...],
    batch_size: int,
    workers: int,
    pin: bool,
    steps: int | None = None,
) -> DataLoader[Item]:
    """Shuffled batches (index (B,), {view name: (B, channels, H, W)}); a last short one is dropped.

    `steps` asks for that many batches in one go, pass after pass, instead of an epoch.
    """
    data = PlainSet(images, views, names)
    count = len(data) if steps is None else steps * batch_size
    return DataLoader(
        data,
        batch_size=batch_size,
        sampler=RandomSampler(data, num_samples=count),
        num_workers=workers,
        pin_memory=pin,
        drop_last=True,
        persistent_workers=workers > 0,
        prefetch_factor=PREFETCH if workers else None,
    )


class PlainStep:
    """One whole step of the plain way.

    float32 allows TF32; bfloat16 is autocast inside the networks, on a GPU only, as in training.
    The precision is set on the job's networks, so each PlainStep needs a job of its own.
    """

    def __init__(self, job: NetworkRun, precision: Precision) -> None:
        self.job, self.precision = job, precision
        self.step = Step(job.settings, job.state, job.data, fast=False)
        for network in job.state.nets.modules.values():
            cast(Network, network).mixed = precision == "bfloat16"

    @property
    def device(self) -> torch.device:
        """Where the step happens."""
        return self.job.data.device

    def __call__(self, index: Tensor, views: Mapping[str, Tensor]) -> Tensor:
        """Learn from a batch of the loader; its loss stays on the device, so nothing waits."""
        job = self.job
        with _tf32(self.precision == "float32"):
            self.step.set_rate(job.settings.optimizer.lr)
            batch = self._batch(index, views)
            out = self.step.learn(batch)
            with torch.no_grad():
                job.settings.deep.commit(job.state.nets, job.state.memory, batch, out)
        job.state.step += 1
        return out.total.detach()

    def _batch(self, index: Tensor, views: Mapping[str, Tensor]) -> Batch:
        rows = index.to(self.device, non_blocking=True)
        placed = {
            name: view.to(self.device, non_blocking=True).contiguous(
                memory_format=torch.channels_last
            )
            for name, view in views.items()
        }
        return self.step.batch(rows, placed)


def plain_views_ms(
    images: Images, settings: Settings, batch_size: int, workers: int, batches: int
) -> float:
    """Milliseconds for a batch of all the method's views from the loader, in steady state.

    The mean over `batches`, made up to whole rounds of the workers, after their first rounds.
    """
    lanes = max(workers, 1)
    warm, count = 3 * lanes, -(-batches // lanes) * lanes
    feed = iter(
        loader(
            images,
            settings.views,
            settings.deep.views,
            batch_size,
            workers,
            pin=torch.cuda.is_available(),
            steps=warm + count,
        )
    )
    for _ in islice(feed, warm):
        pass
    began = time.perf_counter()
    for _ in feed:
        pass
    return (time.perf_counter() - began) / count * 1000


def plain_step_ms(
    step: PlainStep, batches: Iterable[tuple[Tensor, Mapping[str, Tensor]]], warm: int
) -> float:
    """Milliseconds for a step, waiting for its batch included; the mean over all but `warm`.

    A loader's workers are PREFETCH batches each ahead after a slow first step: `warm` must use
    these up. A list of one batch, repeated, times the step without its views.
    """
    feed = iter(batches)
    for batch in islice(feed, warm):
        step(*batch)
    wait(step.device)
    began, count = time.perf_counter(), 0
    for batch in feed:
        step(*batch)
        count += 1
    wait(step.device)
    return (time.perf_counter() - began) / count * 1000


@contextmanager
def _tf32(wanted: bool) -> Iterator[None]:
    """Let float32 products of matrices use TF32, which convolutions may by default."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if wanted else before)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
