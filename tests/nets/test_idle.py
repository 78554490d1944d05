"""Idle rows against plain autograd on two tensors, one of idle rows and one of learning rows."""

import shutil

import pytest
import torch
from torch import nn

from concont.nets.idle import conv_norm
from concont.nets.resnet import ResNet18

IDLE = 5
OVER_CHANNELS = {"dim": (0, 2, 3), "keepdim": True}


def filtered(conv, pair):
    idle, learning = pair
    return conv(idle).detach(), conv(learning)


def norm(bn, pair, shortcut=None, act=True):
    """BatchNorm over both; the learning rows feel their own statistics alone."""
    idle, learning = pair
    together = torch.cat(pair).detach()
    mean = together.mean(**OVER_CHANNELS)
    std = (together.var(**OVER_CHANNELS, correction=0) + bn.eps).sqrt()
    weight, bias = (values.view(1, -1, 1, 1) for values in (bn.weight, bn.bias))
    own_mean = learning.mean(**OVER_CHANNELS)
    own_std = (learning.var(**OVER_CHANNELS, correction=0) + bn.eps).sqrt()
    own = (learning - own_mean) / own_std
    same = own * (own_std / std).detach() + ((own_mean - mean) / std).detach()
    learning, idle = same * weight + bias, ((idle - mean) / std * weight + bias).detach()
    if shortcut is not None:
        idle, learning = idle + shortcut[0], learning + shortcut[1]
    return (idle.relu(), learning.relu()) if act else (idle, learning)


def features(net, images):
    pair = norm(net.bn1, filtered(net.conv1, (images[:IDLE], images[IDLE:])))
    for block in (*net.layer1, *net.layer2, *net.layer3, *net.layer4):
        inner, shortcut = norm(block.bn1, filtered(block.conv1, pair)), pair
        if block.downsample is not None:
            widen, rescale = block.downsample
            shortcut = norm(rescale, filtered(widen, pair), act=False)
        pair = norm(block.bn2, filtered(block.conv2, inner), shortcut)
    return torch.cat(pair).mean(dim=(2, 3))


def layer(dtype=torch.float64, stride=1):
    conv = nn.Conv2d(3, 6, kernel_size=3, stride=stride, padding=1, bias=False)
    bn = nn.BatchNorm2d(6)
    nn.init.uniform_(bn.weight, 0.5, 1.5)
    nn.init.normal_(bn.bias)
    return conv.to(dtype), bn.to(dtype)


def rows(*shape):
    """Idle rows from elsewhere, so that their statistics are not the learning rows'."""
    values = torch.randn(12, *shape, dtype=torch.float64)
    values[:IDLE] = 2 * values[:IDLE] + 1
    return values


def gradients(total, *wanted):
    return torch.autograd.grad(total, wanted)


def assert_near(found, expected, tolerance):
    for a, b in zip(found, expected, strict=True):
        assert a.shape == b.shape
        assert (a - b).norm() <= tolerance * b.norm()


CASES = [(stride, joined, act) for stride in (1, 2) for joined in (True, False) for act in (1, 0)]


@pytest.mark.parametrize(("stride", "joined", "act"), CASES)
def test_a_layers_values_and_gradients_are_the_oracles(stride, joined, act):
    (conv, bn), inputs = layer(stride=stride), rows(3, 8, 8).requires_grad_()
    shortcut = rows(6, 8 // stride, 8 // stride).requires_grad_()
    leaves = [inputs, conv.weight, bn.weight, bn.bias, *([shortcut] if joined else [])]
    found = conv_norm(inputs, conv, bn, IDLE, shortcut if joined else None, bool(act))
    pair = norm(
        bn,
        filtered(conv, (inputs[:IDLE].detach(), inputs[IDLE:])),
        (shortcut[:IDLE].detach(), shortcut[IDLE:]) if joined else None,
        bool(act),
    )
    assert_near([found], [torch.cat(pair)], 1e-12)
    upper = torch.randn_like(found)
    expected = gradients((pair[1] * upper[IDLE:]).sum(), *leaves)
    assert_near(gradients((found * upper).sum(), *leaves), expected, 1e-9)


def test_a_networks_values_and_gradients_are_the_oracles():
    net, images = ResNet18(3, "torch").double(), rows(3, 8, 8)
    net.idle = IDLE
    found, expected = net(images), features(net, images)
    assert_near([found], [expected], 1e-9)
    upper, weights = torch.randn_like(found), list(net.parameters())
    pulls = gradients((found[IDLE:] * upper[IDLE:]).sum(), *weights)
    assert_near(pulls, gradients((expected[IDLE:] * upper[IDLE:]).sum(), *weights), 1e-9)


def test_all_rows_pass_and_enter_the_running_statistics_as_in_a_plain_layer():
    (conv, bn), inputs, plain = layer(), rows(3, 8, 8), nn.BatchNorm2d(6).double()
    plain.load_state_dict(bn.state_dict())
    for _ in range(3):
        found, expected = conv_norm(inputs, conv, bn, IDLE), plain(conv(inputs)).relu()
        assert torch.allclose(found, expected, rtol=1e-12, atol=1e-12)
    assert torch.allclose(bn.running_mean, plain.running_mean, rtol=1e-12)
    assert torch.allclose(bn.running_var, plain.running_var, rtol=1e-12)


def test_idle_rows_get_no_gradient_and_give_none():
    (conv, bn), inputs = layer(), rows(3, 8, 8).requires_grad_()
    shortcut = rows(6, 8, 8).requires_grad_()
    found = conv_norm(inputs, conv, bn, IDLE, shortcut)
    upper = torch.randn_like(found)
    (below, aside, to_weight) = gradients((found * upper).sum(), inputs, shortcut, conv.weight)
    assert not below[:IDLE].any()
    assert not aside[:IDLE].any()
    assert below[IDLE:].any()
    upper[:IDLE] = 1e6
    again = conv_norm(inputs, conv, bn, IDLE, shortcut)
    assert torch.equal(gradients((again * upper).sum(), conv.weight)[0], to_weight)


def test_the_gradient_of_a_weight_has_no_part_along_it():
    (conv, bn), inputs = layer(), rows(3, 8, 8)
    found = conv_norm(inputs, conv, bn, IDLE)
    (pull,) = gradients((found * torch.randn_like(found)).sum(), conv.weight)
    along = (conv.weight * pull).sum(dim=(1, 2, 3))
    lengths = conv.weight.flatten(1).norm(dim=1) * pull.flatten(1).norm(dim=1)
    assert (along.abs() < 1e-4 * lengths).all()  # not 0: eps is there too


def test_no_idle_row_is_a_plain_layer():
    (conv, bn), inputs = layer(), rows(3, 8, 8).requires_grad_()
    found, expected = conv_norm(inputs, conv, bn, 0), bn(conv(inputs)).relu()
    assert torch.equal(found, expected)
    upper = torch.randn_like(found)
    pulls = [gradients((out * upper).sum(), inputs, conv.weight) for out in (found, expected)]
    assert all(torch.equal(a, b) for a, b in zip(*pulls, strict=True))


def in_precision(dtype, mixed=False):
    torch.manual_seed(1)
    (conv, bn), inputs = layer(), 3 + rows(3, 8, 8)  # a mean well above the spread
    upper = torch.randn(12, 6, 8, 8, dtype=torch.float64)
    conv, bn, inputs = conv.to(dtype), bn.to(dtype), inputs.to(dtype).requires_grad_()
    with torch.autocast("cpu", torch.bfloat16, enabled=mixed):
        found = conv_norm(inputs, conv, bn, IDLE, act=False)  # whose kink would amplify rounding
    assert found.dtype == (torch.bfloat16 if mixed else dtype)
    pulls = gradients((found * upper).sum(), inputs, conv.weight, bn.weight, bn.bias)
    assert [pull.dtype for pull in pulls] == [dtype] * 4
    return [found, *pulls, bn.running_mean, bn.running_var]


@pytest.mark.parametrize(("mixed", "tolerance"), [(False, 5e-6), (True, 0.01)])
def test_lower_precision_stays_near_float64(mixed, tolerance):
    found, expected = in_precision(torch.float32, mixed), in_precision(torch.float64)
    assert_near([values.double() for values in found], expected, tolerance)


@pytest.mark.skipif(
    not (shutil.which("g++") or shutil.which("clang++")), reason="needs a C++ compiler"
)
@pytest.mark.slow
def test_compiled_it_gives_the_same_values_and_gradients():
    (conv, bn), inputs = layer(torch.float32), rows(3, 8, 8).float().requires_grad_()
    shortcut, upper = rows(6, 8, 8).float(), torch.randn(12, 6, 8, 8)
    ends = []
    for call in (conv_norm, torch.compile(conv_norm, dynamic=False, fullgraph=True)):
        bn.reset_running_stats()
        found = call(inputs, conv, bn, IDLE, shortcut)
        pulls = gradients((found * upper).sum(), inputs, conv.weight, bn.weight, bn.bias)
        ends.append([found, *pulls, bn.running_mean.clone(), bn.running_var.clone()])
    assert_near(ends[1], ends[0], 1e-5)
