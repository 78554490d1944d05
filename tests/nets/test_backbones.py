import pytest
import torch
from torch import nn

from concont.nets.backbones import resnet18, small


@pytest.mark.parametrize(("channels", "size"), [(1, 8), (3, 32)])
def test_small_takes_any_tiny_image(channels, size):
    assert small(channels, 4)(torch.rand(2, channels, size, size)).shape == (2, 16)


def test_resnet18_is_the_one_for_small_images():
    body = resnet18(3, 0)
    assert sum(p.numel() for p in body.parameters()) == 11_168_832  # 11.17 M without a classifier
    assert body.conv1.kernel_size == (3, 3)
    assert body.conv1.stride == (1, 1)
    maps = []
    body.layer1.register_forward_hook(lambda module, inputs, output: maps.append(output.shape))
    assert body(torch.rand(2, 3, 32, 32)).shape == (2, 512)
    assert maps[0] == (2, 64, 32, 32)  # the stem keeps the resolution
    assert isinstance(body.maxpool, nn.Identity)
