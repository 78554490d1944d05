"""GIST, what the systems without a network see of an image: 512 numbers for its texture."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from concont.data.placement import to_images
from concont.data.sources import Images, check_images
from concont.device import choose_device
from concont.errors import UsageError

SCALES = tuple(0.3 / 1.85**i for i in range(4))  # centre frequencies, cycles a pixel
ORIENTATIONS = tuple(math.pi / 8 * j for j in range(8))
BLOCKS = 4  # an image is 4 x 4 of them
CUTOFF = 4 / math.sqrt(math.log(2))  # of the prefilter: half is left at 4 cycles an image
MARGIN = 5  # pixels put round an image for the prefilter
BORDER = 32  # pixels put round it for the Gabor filters
AT_ONCE = {"cpu": 2**17, "cuda": 2**23}  # pixels, border included: 8 MiB for a cache; 0.5 GiB


def gist(
    images: NDArray[np.uint8], *, size: int = 32, device: str = "auto", block: int | None = None
) -> NDArray[np.float32]:
    """Describe the texture of images by 512 numbers each: GIST [1]_, after its authors' LMgist.

    An image becomes grey (the mean of its channels), is
    resized to size x size where it has another size (bilinear, antialiased, not cropped),
    stretched to [0, 255], evened out in its local contrast, and filtered by 32 Gabor filters;
    a number is the mean magnitude of one filter's response in one of 4 x 4 blocks. An image of
    one grey has zeros.

    Columns: scale after scale from the finest, its 8 orientations, and of each the 16 blocks
    down the first column, then the second, as LMgist stores them. Filters are laid out for the
    image with its border: their `n` is size + 64. All is computed as float64.

    Parameters
    ----------
    images : array (N, H, W) or (N, H, W, 3), uint8
        Grey or colour.
    size : int
        The side to which images are resized, a multiple of 4.
    device : {"auto", "cpu", "cuda"}
        Where to compute; `auto` is a GPU where there is one.
    block : int, optional
        Images at once; by default as many as have `AT_ONCE` pixels. An image takes some 64 bytes
        for each of its (size + 64)^2 pixels.

    Returns
    -------
    array (N, 512), float32
        What `SSPLClassifier` and `PARMClassifier` take as rows.

    References
    ----------
    .. [1] A. Oliva and A. Torralba, "Modeling the Shape of the Scene: A Holistic Representation
       of the Spatial Envelope", International Journal of Computer Vision, 2001.

    Examples
    --------
    >>> import concont, numpy as np
    >>> concont.classic.gist(np.eye(32, dtype=np.uint8)[None]).shape
    (1, 512)
    """
    array = check_images(np.asarray(images), "images", "gist")
    if size < BLOCKS or size % BLOCKS:
        raise UsageError(f"gist: size is {size}; it must be a multiple of {BLOCKS}")
    if block is not None and block < 1:
        raise UsageError(f"gist: block is {block}; it must be at least 1")
    chosen = choose_device(device)
    pixels = max((size + 2 * BORDER) ** 2, array.shape[1] * array.shape[2])
    rows = block or max(1, AT_ONCE[chosen.type] // pixels)
    low_pass, gabors = low_pass_filter(size).to(chosen), gabor_filters(size).to(chosen)
    features = np.empty((len(array), len(gabors) * BLOCKS**2), dtype=np.float32)
    for start in range(0, len(array), rows):
        grey = stretch_contrast(array[start : start + rows], size, chosen)
        responses = average_responses(even_out_contrast(grey, low_pass), gabors)
        features[start : start + rows] = responses.cpu().numpy()
    return features


def stretch_contrast(images: Images, size: int, device: torch.device) -> Tensor:
    """Grey images (B, size, size), each from 0 to 255; 0 where one has a single grey."""
    grey = to_images(images, device).to(torch.float64).mean(dim=1, keepdim=True)
    if grey.shape[2:] != (size, size):
        grey = F.interpolate(grey, (size, size), mode="bilinear", antialias=True)
    low, high = grey.amin(dim=(2, 3), keepdim=True), grey.amax(dim=(2, 3), keepdim=True)
    span = high - low
    flat = span < 1e-6  # what resizing makes of a single grey differs by rounding
    return torch.where(flat, 0.0, (grey - low) * 255 / torch.where(flat, 1.0, span))[:, 0]


def even_out_contrast(grey: Tensor, low_pass: Tensor) -> Tensor:
    """The details of the logarithm, divided by their local standard deviation (B, H, W)."""

    def smooth(x: Tensor) -> Tensor:
        return torch.real(torch.fft.ifft2(torch.fft.fft2(x) * low_pass))

    logarithm = add_mirrored_border(grey.log1p(), MARGIN)
    details = logarithm - smooth(logarithm)
    deviation = smooth(details.square()).abs().sqrt()
    return remove_border(details / (0.2 + deviation), MARGIN)


def average_responses(images: Tensor, gabors: Tensor) -> Tensor:
    """Mean magnitude of each filter's response in each block (B, filters x blocks)."""
    spectrum = torch.fft.fft2(add_mirrored_border(images, BORDER))
    side = images.shape[1] // BLOCKS
    means = []
    for gabor in gabors:  # one at a time: together they leave the cache and take longer
        response = remove_border(torch.fft.ifft2(spectrum * gabor), BORDER).abs()
        means.append(F.avg_pool2d(response, side).transpose(1, 2))  # (B, columns, rows)
    return torch.stack(means, dim=1).flatten(1)


def add_mirrored_border(images: Tensor, width: int) -> Tensor:
    """Images (B, H, H) with a border in which they are mirrored, outermost pixels repeated."""
    side = images.shape[1]
    position = torch.arange(-width, side + width, device=images.device) % (2 * side)
    folded = torch.minimum(position, 2 * side - 1 - position)
    return images[:, folded[:, None], folded]


def remove_border(images: Tensor, width: int) -> Tensor:
    """Images without that border."""
    return images[:, width:-width, width:-width]


def low_pass_filter(size: int) -> Tensor:
    """The prefilter's Gaussian over the frequencies of an image with its margin."""
    radius, _ = _frequencies(size + 2 * MARGIN)
    return torch.exp(-((radius / CUTOFF) ** 2))


def gabor_filters(size: int) -> Tensor:
    """The filters (32, n, n) over the frequencies of an image with its border."""
    n = size + 2 * BORDER
    radius, angle = _frequencies(n)
    filters = []
    for scale in SCALES:
        for orientation in ORIENTATIONS:
            turned = angle + orientation
            turned = torch.where(turned > math.pi, turned - 2 * math.pi, turned)
            exponent = 3.5 * (radius / n / scale - 1) ** 2 + 2 * math.pi * turned**2
            filters.append(torch.exp(-exponent))
    return torch.stack(filters)


def _frequencies(n: int) -> tuple[Tensor, Tensor]:
    """Distance from 0 and angle of each frequency (n, n), in cycles over n pixels."""
    cycles = torch.fft.fftfreq(n, 1 / n, dtype=torch.float64)
    down, across = torch.meshgrid(cycles, cycles, indexing="ij")
    return torch.hypot(across, down), torch.atan2(down, across)
