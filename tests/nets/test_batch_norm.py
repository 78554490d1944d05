"""On one process; what it does on several is in tests/training/test_ranks.py."""

import copy

import pytest
import torch
from torch import nn

from concont.errors import UsageError
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


@pytest.mark.parametrize("name", ["mobilenetv3_small_050", "regnety_002"])
def test_timms_keep_the_activation_that_is_in_them(name):
    timm = pytest.importorskip("timm")
    networks = [timm.create_model(name, num_classes=0) for _ in range(2)]
    networks[1].load_state_dict(networks[0].state_dict())
    share_statistics(networks[1], torch.device("cpu"))
    shared = copy.deepcopy(networks[1])  # as the key network is
    assert list(shared.state_dict()) == list(networks[0].state_dict())
    images, dropped = torch.randn(4, 3, 32, 32), torch.get_rng_state()
    for training in (True, False):
        found = []
        for network in (networks[0], shared):
            torch.set_rng_state(dropped)
            found.append(network.train(training)(images))
        assert torch.allclose(*found, atol=1e-3, rtol=1e-3)
    norms = [norm for norm in shared.modules() if isinstance(norm, SharedBatchNorm)]
    assert any(not isinstance(norm.act, nn.Identity) for norm in norms)


def test_one_of_a_kind_of_its_own_is_refused():
    class Doubling(nn.BatchNorm2d):
        def forward(self, inputs):
            return 2 * super().forward(inputs)

    with pytest.raises(UsageError, match="Doubling is a BatchNorm of its own kind"):
        share_statistics(nn.Sequential(nn.Sequential(Doubling(2))), torch.device("cpu"))


def test_without_averages_it_takes_those_of_the_batch():
    plain = nn.BatchNorm2d(3, track_running_stats=False)
    shared = nn.Sequential(nn.BatchNorm2d(3, track_running_stats=False))
    share_statistics(shared, torch.device("cpu"))
    images = torch.randn(4, 3, 2, 2) + 1
    for training in (True, False):
        found, expected = (norm.train(training)(images) for norm in (shared, plain))
        assert torch.allclose(found, expected, atol=1e-6)
