import sys

import pytest
import torch
from safetensors.torch import save_file

from concont.core.memory import average_
from concont.errors import ConcontError, DataError, UsageError
from concont.nets.network import build, find_moments, with_key
from concont.nets.timm_networks import (
    import_timm,
    make_timm_backbone,
    pretrained_moments,
    refuse_unknown_model,
)
from concont.runs.model_settings import Model

timm = pytest.importorskip("timm")
MOMENTS = torch.tensor([0.5]), torch.tensor([0.25])
RESNET, VIT = "timm:test_resnet", "timm:test_vit"


def network(name, shape=(1, 16, 16), seed=1, **options):
    return build(Model(name, **options), shape, 3, MOMENTS, seed)


@pytest.fixture
def weights(tmp_path):
    """A file of a model with its classifier, as its own state says it."""

    def write(name="test_resnet", change=lambda state: state, **options):
        torch.manual_seed(7)
        state = timm.create_model(name, num_classes=5, **options).state_dict()
        path = tmp_path / f"{name}.safetensors"
        save_file(change(state), path)
        return str(path), state

    return write


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("name", [RESNET, VIT, "timm:test_efficientnet_ln", "timm:test_nfnet"])
def test_a_model_gives_pooled_features_of_any_channels(name, channels):
    backbone = make_timm_backbone(Model(name), (channels, 32, 48))
    features = backbone(torch.rand(2, channels, 32, 48))
    assert features.shape == (2, backbone.num_features)


def test_random_weights_are_the_seeds():
    one, two, other = network(RESNET), network(RESNET), network(RESNET, seed=2)
    for name, weight in one.state_dict().items():
        assert torch.equal(weight, two.state_dict()[name])
    assert not torch.equal(one.backbone.conv1[0].weight, other.backbone.conv1[0].weight)


@pytest.mark.parametrize("name", [RESNET, VIT, "timm:test_efficientnet_ln"])
def test_the_momentum_network_follows_a_model_with_any_normalisation(name):
    online = network(name)
    nets = with_key(online, True)
    key = nets.modules["key"]
    before = [p.clone() for p in key.parameters()]
    with torch.no_grad():
        for parameter in online.parameters():
            parameter.add_(1.0)
    average_(key, online, 0.75)
    for old, new in zip(before, key.parameters(), strict=True):
        assert torch.allclose(new, old + 0.25, atol=1e-5)
    first, second = nets.online.features(torch.rand(4, 1, 16, 16), torch.rand(2, 1, 16, 16))
    assert (len(first), len(second)) == (4, 2)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("timm:resnet5o", "timm has no model 'resnet5o'; did you mean resnet50?"),
        ("timm:", r"timm has no model ''; timm.list_models\(\) names all"),
        (
            "timm:resnet18.a1_in1l",
            "timm has no weights 'a1_in1l' of resnet18; did you mean a1_in1k",
        ),
    ],
)
def test_a_name_that_timm_does_not_have_is_refused_with_the_nearest(name, message):
    with pytest.raises(UsageError, match=message):
        refuse_unknown_model(Model(name))
    refuse_unknown_model(Model("timm:resnet18.a1_in1k"))


def test_without_timm_a_line_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(UsageError, match=r"needs the package timm: pip install 'concont\[timm\]'"):
        import_timm()


@pytest.mark.parametrize("name", ["timm:inception_v3", "timm:crossvit_tiny_240"])
def test_images_that_a_model_cannot_take_are_one_line(name):
    with pytest.raises(UsageError) as caught:
        make_timm_backbone(Model(name), (3, 32, 32))
    side = {"timm:inception_v3": 299}.get(name, 240)
    message = str(caught.value)
    assert f"{name} cannot take images of 32 x 32; it was made for {side} x {side}" in message
    assert f"--image-size {side} (" in message
    assert "\n" not in message


def test_a_model_of_a_fixed_size_is_told_the_images_size():
    backbone = make_timm_backbone(Model("timm:vit_tiny_patch16_224"), (3, 64, 32))
    assert backbone.patch_embed.img_size == (64, 32)


@pytest.mark.parametrize("name", ["test_resnet", "test_vit"])
def test_weights_of_a_file_are_taken_but_for_the_classifier(weights, name):
    path, state = weights(name)
    shape = (3, 160, 160)
    found = make_timm_backbone(Model(f"timm:{name}", weights=path), shape).state_dict()
    assert set(state) - set(found) == ({"head.weight", "head.bias"} if "vit" in name else HEAD)
    assert all(torch.equal(weight, state[key]) for key, weight in found.items())
    fresh = make_timm_backbone(Model(f"timm:{name}", weights=path), shape, load_weights=False)
    assert not torch.equal(next(fresh.parameters()), next(iter(found.values())))


HEAD = {"fc.weight", "fc.bias"}


def test_weights_are_adapted_to_grey_images_and_to_their_size(weights):
    path, state = weights("test_vit")
    model = Model(VIT, weights=path)
    found = make_timm_backbone(model, (1, 32, 32)).state_dict()
    kernel = "patch_embed.proj.weight"
    assert torch.allclose(found[kernel], state[kernel].sum(dim=1, keepdim=True), atol=1e-6)
    assert found["pos_embed"].shape[1] < state["pos_embed"].shape[1]
    assert torch.equal(found["blocks.0.mlp.fc1.weight"], state["blocks.0.mlp.fc1.weight"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda s: {k: v for k, v in s.items() if "layer1" not in k},
            "they lack layer1.0.bn1.bias,",
        ),
        (lambda s: {**s, "extra.one": torch.ones(1)}, "the model does not, extra.one$"),
        (
            lambda s: {**s, "layer1.0.conv1.weight": torch.ones(3, 3)},
            "other sizes: layer1.0.conv1.weight: copying",
        ),
    ],
)
def test_weights_that_do_not_fit_are_one_line(weights, change, message):
    path, _ = weights(change=change)
    with pytest.raises(DataError, match=message) as caught:
        make_timm_backbone(Model(RESNET, weights=path), (3, 32, 32))
    assert path in str(caught.value)
    assert "\n" not in str(caught.value)


def test_weights_of_timms_own_that_cannot_be_fetched_are_one_line(monkeypatch, tmp_path):
    constants = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(ConcontError, match=f"no pretrained weights of {RESNET}: ") as caught:
        make_timm_backbone(Model(RESNET, weights="pretrained"), (3, 32, 32))
    assert "give the file: model.weights=FILE.safetensors" in str(caught.value)
    assert "\n" not in str(caught.value)
    make_timm_backbone(Model(RESNET, weights="pretrained"), (3, 32, 32), load_weights=False)


def test_weights_of_timms_own_are_asked_for_by_its_name(monkeypatch):
    asked, real = [], timm.create_model

    def create(name, pretrained=False, **options):
        asked.append((name, pretrained))
        return real(name, **options)

    monkeypatch.setattr(timm, "create_model", create)
    make_timm_backbone(Model("timm:test_resnet.r160_in1k", weights="pretrained"), (3, 32, 32))
    assert asked[-1] == ("test_resnet.r160_in1k", True)


def test_given_weights_bring_their_own_normalisation():
    model = Model("timm:resnet18", weights="pretrained")
    mean, std = pretrained_moments(model, 3)
    assert mean.tolist() == pytest.approx([0.485, 0.456, 0.406])
    assert std.tolist() == pytest.approx([0.229, 0.224, 0.225])
    grey = pretrained_moments(model, 1)
    assert [x.tolist() for x in grey] == [pytest.approx([0.449]), pytest.approx([0.226])]
    assert find_moments(model, 1, MOMENTS)[0].tolist() == grey[0].tolist()
    assert find_moments(Model("timm:resnet18"), 1, MOMENTS) is MOMENTS
