import copy

import pytest
import torch
from torch import nn

from concont.errors import UsageError
from concont.nets.network import build, with_key
from concont.runs.model_settings import Model

MOMENTS = torch.tensor([0.5]), torch.tensor([0.25])
TINY = Model(name="small", width=4, hidden=8, embedding=6)


def tiny(seed=1, **options):
    return build(TINY, (1, 8, 8), 3, MOMENTS, seed, **options)


def test_the_seed_alone_decides_the_weights():
    torch.manual_seed(5)
    one = tiny()
    state = torch.get_rng_state()
    two, other = tiny(), tiny(seed=2)
    assert torch.equal(state, torch.get_rng_state())  # and nothing else is disturbed
    for name, weight in one.state_dict().items():
        assert torch.equal(weight, two.state_dict()[name])
    assert not torch.equal(one.classifier.weight, other.classifier.weight)


def test_shapes_and_unit_rows():
    network = tiny()
    first, second = network.features(torch.rand(4, 1, 8, 8), torch.rand(2, 1, 8, 8))
    assert (len(first), len(second)) == (4, 2)
    assert network.logits(first).shape == (4, 3)
    assert torch.allclose(network.embed(second).norm(dim=1), torch.ones(2), atol=1e-6)
    assert network(torch.rand(4, 1, 8, 8)).shape == (4, 3)


def test_scores_do_not_pass_the_split_and_are_what_training_has():
    network, images = tiny().eval(), torch.rand(5, 1, 8, 8)
    (features,) = network.features(images)
    assert torch.equal(network(images), network.logits(features))
    traced = torch.export.export(
        network, (images,), dynamic_shapes={"images": {0: torch.export.Dim("batch")}}
    )
    for size in (1, 2, 7):
        assert torch.allclose(
            traced.module()(torch.ones(size, 1, 8, 8)), network(torch.ones(size, 1, 8, 8))
        )


def test_views_that_pass_together_share_their_statistics():
    network = tiny().train()
    x, y = torch.rand(4, 1, 8, 8), torch.rand(4, 1, 8, 8)
    together = torch.cat(network.features(x, y))
    joined = network.features(torch.cat([x, y]))[0]
    apart = torch.cat([network.features(x)[0], network.features(y)[0]])
    assert torch.allclose(together, joined, atol=1e-5)
    assert not torch.allclose(together, apart, atol=1e-3)


def test_images_are_normalised_by_the_datas_own_moments():
    network = tiny().eval()
    seen = []
    network.backbone.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    network(torch.full((1, 1, 8, 8), 0.75))
    assert torch.allclose(seen[0], torch.ones(1))


def test_the_key_network_starts_equal_and_learns_nothing():
    online = tiny()
    nets = with_key(online, True)
    assert nets.key is not online
    assert not any(p.requires_grad for p in nets.modules["key"].parameters())
    for a, b in zip(online.parameters(), nets.modules["key"].parameters(), strict=True):
        assert torch.equal(a, b)
    alone = with_key(online, False)
    assert list(alone.modules) == ["online"]


def test_a_network_given_in_eval_mode_trains():
    body = nn.Sequential(nn.Flatten(), nn.BatchNorm1d(64)).eval()
    assert all(module.training for module in tiny(backbone=body).modules())


def test_an_own_network_keeps_its_weights():
    body = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
    before = body[1].weight.clone()
    network = tiny(backbone=body)
    assert network.classifier.in_features == 10
    assert torch.equal(body[1].weight, before)
    with pytest.raises(UsageError, match=r"must return features \(B, dim\) .* gave \(2, 1, 8, 8\)"):
        tiny(backbone=nn.Identity())


def test_weights_are_read_back_from_a_plain_dictionary():
    """As a file of weights gives them: without the versions that `state_dict` carries."""
    network, other = tiny(), tiny(seed=2)
    other.load_state_dict(dict(network.state_dict()))
    assert torch.equal(other.backbone[0].weight, network.backbone[0].weight)


def test_a_frozen_backbone_predicts_while_its_heads_learn():
    network = tiny().freeze_backbone()
    images = torch.rand(4, 1, 8, 8)
    expected = copy.deepcopy(network).eval()(images)
    for mode in (True, False):
        network.train(mode)
        assert not any(module.training for module in network.backbone.modules())
        assert network.classifier.training is mode
        assert torch.equal(network(images), expected)
    network(images).sum().backward()
    assert network.classifier.weight.grad is not None
    assert all(p.grad is None for p in network.backbone.parameters())
    key = with_key(network, True).modules["key"].train()
    assert not any(module.training for module in key.backbone.modules())
