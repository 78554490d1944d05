"""On one process; what it does on several is in tests/training/test_ranks.py."""

import pytest
import torch
from torch import nn

from concont.nets.batch_norm import SharedBatchNorm, share_statistics
from concont.nets.resnet import UncountedBatchNorm


@pytest.mark.parametrize("momentum", [0.1, None])
@pytest.mark.parametrize(
    ("kind", "shape"), [(nn.BatchNorm2d, (6, 3, 4, 5)), (nn.BatchNorm1d, (6, 3))]
)
def test_it_computes_what_pytorchs_own_does(kind, shape, momentum):
    plain = kind(3, momentum=momentum).double()
    shared = nn.Sequential(kind(3, momentum=momentum).double())
    with torch.no_grad():
        for each in (plain, shared[0]):
            each.weight.copy_(torch.tensor([1.0, 2.0, 0.5]))
            each.bias.copy_(torch.tensor([0.0, -1.0, 3.0]))
    known = dict(shared[0].named_parameters())
    share_statistics(shared, torch.device("cpu"))
    assert isinstance(shared[0], SharedBatchNorm)
    assert all(shared[0].get_parameter(name) is known[name] for name in known)
    for number in range(3):
        inputs = torch.randn(shape, dtype=torch.float64) + number
        one, two = (inputs.clone().requires_grad_() for _ in range(2))
        found, expected = shared(one), plain(two)
        assert torch.allclose(found, expected)
        pull = torch.randn_like(expected)
        found.backward(pull), expected.backward(pull)
        assert torch.allclose(one.grad, two.grad)
        for name, parameter in plain.named_parameters():
            assert torch.allclose(shared[0].get_parameter(name).grad, parameter.grad)
        for name, buffer in plain.named_buffers():
            assert torch.allclose(shared[0].get_buffer(name), buffer)
    shared.eval(), plain.eval()
    assert torch.allclose(shared(inputs), plain(inputs))


def test_every_batchnorm_of_a_network_is_replaced_and_keeps_its_name():
    network = nn.Sequential(nn.Conv2d(1, 2, 1), nn.Sequential(UncountedBatchNorm(2), nn.ReLU()))
    names = list(network.state_dict())
    network.eval()
    share_statistics(network, torch.device("cpu"))
    assert isinstance(network[1][0], SharedBatchNorm)
    assert not network[1][0].training
    assert list(network.state_dict()) == names
    on_gpu = nn.Sequential(nn.BatchNorm2d(2))
    share_statistics(on_gpu, torch.device("cuda"))
    assert isinstance(on_gpu[0], nn.SyncBatchNorm)
