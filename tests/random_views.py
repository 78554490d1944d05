"""Images, uniform numbers and views for the tests of augmentation."""

import torch

from concont.augment.views import ViewRenderer, count_uniforms
from concont.runs.view_settings import View

render_one = ViewRenderer().render_one
IMAGES = torch.rand(6, 3, 12, 16, generator=torch.Generator().manual_seed(0))
WHOLE_IMAGE = View(ratio=(1.0, 1.0))  # of a square


def make_uniforms(view, value=None, rows=6, seed=0):
    """The same value everywhere, or random numbers of the seed."""
    shape = (rows, count_uniforms(view))
    if value is not None:
        return torch.full(shape, value)
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed))
