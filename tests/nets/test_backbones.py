import pytest
import torch
from torch import nn

from concont.nets.backbones import BACKBONES, resnet18, small
from concont.runs.settings import Model


@pytest.mark.parametrize(("channels", "size"), [(1, 8), (3, 32)])
def test_small_takes_any_tiny_image(channels, size):
    body = small(channels, Model(width=4))
    assert body(torch.rand(2, channels, size, size)).shape == (2, 16)


def test_resnet18_is_the_one_for_small_images():
    body = resnet18(3, Model())
    assert sum(p.numel() for p in body.parameters()) == 11_168_832  # 11.17 M without a classifier
    assert body.conv1.kernel_size == (3, 3)
    assert body.conv1.stride == (1, 1)
    assert body(torch.rand(2, 3, 32, 32)).shape == (2, 512)
    assert not any(isinstance(module, nn.MaxPool2d) for module in body.modules())


def test_the_settings_reach_the_backbone():
    he, own = (resnet18(1, Model(init=init)).layer4[1].conv2.weight for init in ("he", "torch"))
    assert he.std() > 2 * own.std()
    assert set(BACKBONES) == {"resnet18", "narrow-resnet18", "small"}


def test_a_narrow_resnet_is_the_same_but_for_its_channels():
    wide, narrow = (BACKBONES[n](3, Model(n, 16)) for n in ("resnet18", "narrow-resnet18"))
    assert narrow(torch.rand(2, 3, 32, 32)).shape == (2, 128)
    shapes = zip(wide.state_dict().items(), narrow.state_dict().items(), strict=True)
    for (name, full), (other, thin) in shapes:
        assert name == other
        assert [d if d in (1, 3) else d // 4 for d in full.shape] == list(thin.shape), name
    last = narrow.layer4[1].conv2.weight
    assert abs(last.std() / (2 / (9 * 128)) ** 0.5 - 1) < 0.05  # He's spread, by outputs
