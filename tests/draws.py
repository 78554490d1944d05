"""Images, uniform numbers and views for the tests of augmentation."""

import torch

from concont.augment.views import Stages, n_draws
from concont.runs.settings import View

apply_view = Stages().apply
IMAGES = torch.rand(6, 3, 12, 16, generator=torch.Generator().manual_seed(0))
PLAIN = View(ratio=(1.0, 1.0))


def uniforms(view, value=None, rows=6, seed=0):
    shape = (rows, n_draws(view))
    if value is not None:
        return torch.full(shape, value)
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed))
