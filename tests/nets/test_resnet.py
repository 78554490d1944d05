import math

import pytest
import torch
from torch import nn
from torchvision.models import resnet18

from concont.nets.resnet import ResNet18

IMAGES = torch.rand(6, 3, 8, 8, generator=torch.Generator().manual_seed(0))


def pair(init="he"):
    """The network, and torchvision's own with the same weights and the same stem."""
    net, theirs = ResNet18(3, init), resnet18()
    theirs.conv1 = nn.Conv2d(3, 64, kernel_size=3, padding=1, bias=False)
    theirs.maxpool, theirs.fc = nn.Identity(), nn.Identity()
    theirs.load_state_dict(net.state_dict())
    return net, theirs


def test_it_is_torchvisions_but_for_the_stem():
    net, theirs = pair()
    upper = torch.randn(6, 512)
    for mode in (True, False):
        net.train(mode), theirs.train(mode)
        found, expected = net(IMAGES), theirs(IMAGES)
        assert found.shape == (6, 512)
        assert torch.allclose(found, expected, atol=1e-6)
        (found * upper).sum().backward(), (expected * upper).sum().backward()
    for ours, own in zip(net.parameters(), theirs.parameters(), strict=True):
        assert torch.allclose(ours.grad, own.grad, rtol=1e-4, atol=1e-5 * own.grad.abs().max())
    for name, values in net.named_buffers():
        if not name.endswith("num_batches_tracked"):  # which is left alone: UncountedBatchNorm
            assert torch.allclose(values, theirs.get_buffer(name), atol=1e-6)


def test_with_the_stem_of_a_quarter_it_is_torchvisions_own():
    net, theirs = ResNet18(3, "he", stem="quarter").eval(), resnet18().eval()
    theirs.fc = nn.Identity()
    theirs.load_state_dict(net.state_dict())
    images = torch.rand(2, 3, 64, 64)
    assert torch.allclose(net(images), theirs(images), atol=1e-6)


@pytest.mark.parametrize("width", [64, 4])
def test_every_stem_has_the_same_names_and_draws(width):
    nets = {}
    for stem in ("whole", "half", "quarter"):
        torch.manual_seed(0)
        nets[stem] = ResNet18(3, "he", width, stem).state_dict()
    for name, weight in nets["whole"].items():
        assert torch.equal(nets["half"][name], weight)
        if name != "conv1.weight":
            assert torch.equal(nets["quarter"][name], weight)
    assert set(nets["quarter"]) == set(nets["whole"])


@pytest.mark.parametrize("init", ["he", "torch"])
def test_weights_start_with_the_spread_that_was_asked_for(init):
    for name, module in ResNet18(3, init).named_modules():
        if isinstance(module, nn.Conv2d):
            area = module.kernel_size[0] ** 2
            he = math.sqrt(2 / (area * module.out_channels))
            spread = {"he": he, "torch": 1 / math.sqrt(3 * area * module.in_channels)}[init]
            assert module.weight.std().item() == pytest.approx(spread, rel=0.05), name
            if init == "torch":  # uniform, so bounded
                assert module.weight.abs().max() <= math.sqrt(3) * spread


def test_its_weights_have_the_names_of_every_run_so_far():
    names = set(ResNet18(3, "he").state_dict())
    assert {"conv1.weight", "bn1.weight", "bn1.num_batches_tracked"} <= names
    assert {"layer2.0.downsample.1.running_var", "layer4.1.conv2.weight"} <= names
    assert len(names) == 120
