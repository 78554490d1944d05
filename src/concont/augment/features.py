"""Weak and strong views of rows of features: noise, and features masked by their mean."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from concont.augment.views import draw_uniforms, kind_of
from concont.runs.view_settings import View, Views

NEVER_VARIES = 1e30  # the deviation of a feature that is to count for nothing, whatever it is


class FeatureRenderer:
    """Renders views of features of these means and standard deviations (D,)."""

    def __init__(
        self, mean: Tensor, std: Tensor, wrap: Callable[[Any], Any] = lambda stage: stage
    ) -> None:
        self.mean = mean.flatten()
        self.std = torch.where(std < NEVER_VARIES, std, 0.0).flatten()
        self.change = wrap(change_features)

    def draw(
        self, views: Views, names: tuple[str, ...], rows: int, generator: torch.Generator
    ) -> dict[str, Tensor]:
        """The uniform numbers (B, D) of each named view, for a batch of `rows` rows."""
        return draw_uniforms(views, names, rows, generator, self.count_uniforms)

    def count_uniforms(self, view: View) -> int:
        """One a feature, and none where nothing is changed."""
        return len(self.mean) if view.noise or view.masked else 0

    def render(
        self, features: Tensor, views: Views, uniforms: Mapping[str, Tensor]
    ) -> dict[str, Tensor]:
        """The named views of features (B, D), from the uniforms of each."""
        scale = self.mean, self.std
        return {
            name: self.change(features, getattr(views, kind_of(name)), numbers, *scale)
            for name, numbers in uniforms.items()
        }


def change_features(
    features: Tensor, view: View, uniforms: Tensor, mean: Tensor, std: Tensor
) -> Tensor:
    """One view (B, D) of features, from uniforms (B, D); mean, std (D,) of each feature.

    A uniform number below `masked` puts the mean in the feature's place. The others, which lie
    between `masked` and 1, are its noise: uniform around 0, with `noise` times the feature's
    deviation for its own.
    """
    if uniforms.shape[1] == 0:
        return features
    if view.masked == 1:
        return mean.expand_as(features)
    width = math.sqrt(12) * view.noise / (1 - view.masked)  # uniform on [0, 1) has 1/sqrt(12)
    noise = (uniforms - (1 + view.masked) / 2) * (width * std)
    return torch.where(uniforms < view.masked, mean, features + noise)
