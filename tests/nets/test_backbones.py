import pytest
import torch
from torch import nn

from concont.nets.backbones import BACKBONES, choose_stem, resnet18, small
from concont.runs.model_settings import NETWORKS, OF_IMAGES, Model


@pytest.mark.parametrize(("channels", "size"), [(1, 8), (3, 32), (3, 64), (3, 112)])
def test_small_takes_any_image(channels, size):
    body = small((channels, size, size), Model("small", width=4))
    assert body(torch.rand(2, channels, size, size)).shape == (2, 16)


def test_resnet18_is_the_one_for_small_images():
    body = resnet18((3, 32, 32), Model())
    assert sum(p.numel() for p in body.parameters()) == 11_168_832  # 11.17 M without a classifier
    assert body.conv1.kernel_size == (3, 3)
    assert body.conv1.stride == (1, 1)
    assert body(torch.rand(2, 3, 32, 32)).shape == (2, 512)
    assert not any(isinstance(module, nn.MaxPool2d) for module in body.modules())


@pytest.mark.parametrize("side", [4, 32, 48, 49, 64, 96, 97, 224])
def test_the_stem_follows_the_shorter_side_unless_it_is_chosen(side):
    expected = "whole" if side <= 48 else "half" if side <= 96 else "quarter"
    assert choose_stem(Model(), (3, side, side + 50)) == expected
    assert choose_stem(Model(), (3, side + 50, side)) == expected
    assert choose_stem(Model(stem="half"), (3, side, side)) == "half"


@pytest.mark.parametrize("name", OF_IMAGES)
@pytest.mark.parametrize(("stem", "part"), [("whole", 1), ("half", 2), ("quarter", 4)])
def test_a_stem_keeps_its_part_of_the_side(name, stem, part):
    body, maps = BACKBONES[name]((3, 32, 32), Model(name, stem, width=4)), []
    first = body[6] if name == "small" else body.layer1  # `small`: the first pooling
    first.register_forward_hook(lambda module, inputs, out: maps.append(inputs[0].shape[2:]))
    body(torch.rand(2, 3, 32, 32))
    assert maps == [(32 // part, 32 // part)]


def test_the_settings_reach_the_backbone():
    shape = (1, 8, 8)
    he, own = (resnet18(shape, Model(init=i)).layer4[1].conv2.weight for i in ("he", "torch"))
    assert he.std() > 2 * own.std()
    assert set(BACKBONES) == set(NETWORKS) == {"resnet18", "narrow-resnet18", "small", "mlp"}


def test_a_narrow_resnet_is_the_same_but_for_its_channels():
    names = ("resnet18", "narrow-resnet18")
    wide, narrow = (BACKBONES[name]((3, 32, 32), Model(name, width=16)) for name in names)
    assert narrow(torch.rand(2, 3, 32, 32)).shape == (2, 128)
    shapes = zip(wide.state_dict().items(), narrow.state_dict().items(), strict=True)
    for (name, full), (other, thin) in shapes:
        assert name == other
        assert [d if d in (1, 3) else d // 4 for d in full.shape] == list(thin.shape), name
    last = narrow.layer4[1].conv2.weight
    assert abs(last.std() / (2 / (9 * 128)) ** 0.5 - 1) < 0.05  # He's spread, by outputs


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_an_mlp_has_so_many_layers_of_so_many_units(depth):
    body = BACKBONES["mlp"]((7,), Model("mlp", width=12, depth=depth))
    assert body(torch.randn(5, 7)).shape == (5, 12)
    linear = [module for module in body if isinstance(module, nn.Linear)]
    sizes = [(each.in_features, each.out_features) for each in linear]
    assert sizes == [(7, 12), *[(12, 12)] * (depth - 1)]
    assert (body(torch.randn(5, 7)) >= 0).all()
