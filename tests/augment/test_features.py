import math

import numpy as np
import pytest
import torch

from concont.augment.features import NEVER_VARIES, FeatureRenderer, change_features
from concont.runs.view_settings import View, Views

MEAN, STD = torch.tensor([1.0, -2.0, 0.0, 5.0]), torch.tensor([2.0, 0.5, NEVER_VARIES, 1.0])
VIEWS = Views(weak=View(noise=0.3), strong=View(noise=1.0, masked=0.25))


def plain(row, view, uniforms, mean, std):
    """One row of features, a feature at a time."""
    changed = []
    for value, u, m, s in zip(row, uniforms, mean, std, strict=True):
        if u < view.masked:
            changed.append(m)
        else:
            along = (u - view.masked) / (1 - view.masked)  # uniform on [0, 1) once more
            changed.append(value + math.sqrt(3) * view.noise * s * (2 * along - 1))
    return changed


@pytest.mark.parametrize("view", [View(noise=0.5), View(masked=0.4), View(noise=2.0, masked=0.3)])
def test_a_view_is_the_plain_one(view):
    stream = torch.Generator().manual_seed(0)
    rows, mean, std = (torch.randn(n, 4, dtype=torch.float64, generator=stream) for n in (9, 1, 1))
    mean, std = mean[0], std[0].abs()
    numbers = torch.rand(9, 4, dtype=torch.float64, generator=stream)
    found = change_features(rows, view, numbers, mean, std)
    for row, own, expected in zip(rows.tolist(), numbers.tolist(), found.tolist(), strict=True):
        assert expected == pytest.approx(plain(row, view, own, mean.tolist(), std.tolist()))


def test_noise_has_its_deviation_and_masks_their_share():
    renderer, rows = FeatureRenderer(MEAN, STD), 20_000
    draws = renderer.draw(VIEWS, ("weak", "strong"), rows, torch.Generator().manual_seed(0))
    features = MEAN + torch.tensor([3.0, 1.0, 0.0, -2.0]).expand(rows, 4)
    made = renderer.render(features, VIEWS, draws)
    weak = (made["weak"] - features).numpy()
    assert np.allclose(weak.std(axis=0), 0.3 * np.array([2.0, 0.5, 0.0, 1.0]), rtol=0.02)
    assert np.allclose(weak.mean(axis=0), 0, atol=0.01)
    masked = (made["strong"] == MEAN).float().mean(dim=0)[[0, 1, 3]]
    assert torch.allclose(masked, torch.full((3,), 0.25), atol=0.01)
    kept = made["strong"][:, 3] != MEAN[3]
    noise = (made["strong"] - features)[kept, 3]
    assert noise.std().item() == pytest.approx(1.0, rel=0.02)
    assert noise.mean().item() == pytest.approx(0.0, abs=0.03)


def test_a_feature_that_never_varies_gets_no_noise():
    renderer = FeatureRenderer(MEAN, STD)
    draws = renderer.draw(VIEWS, ("weak",), 50, torch.Generator().manual_seed(0))
    made = renderer.render(torch.zeros(50, 4), VIEWS, draws)["weak"]
    assert (made[:, 2] == 0).all()
    assert (made[:, 0] != 0).all()


def test_each_view_has_numbers_of_its_own_and_none_where_nothing_changes():
    renderer, stream = FeatureRenderer(MEAN, STD), torch.Generator().manual_seed(3)
    views = Views(weak=View(), strong=View(noise=0.1))
    draws = renderer.draw(views, ("weak", "strong", "strong2"), 5, stream)
    assert [tuple(each.shape) for each in draws.values()] == [(5, 0), (5, 4), (5, 4)]
    features = torch.randn(5, 4)
    made = renderer.render(features, views, draws)
    assert torch.equal(made["weak"], features)
    assert not torch.equal(made["strong"], made["strong2"])
    again = renderer.draw(views, tuple(draws), 5, torch.Generator().manual_seed(3))
    assert all(torch.equal(draws[name], again[name]) for name in draws)


def test_everything_masked_is_the_mean():
    found = change_features(torch.randn(3, 4), View(masked=1.0), torch.rand(3, 4), MEAN, STD)
    assert torch.equal(found, MEAN.expand(3, 4))
