import pytest

from concont.runs.model_settings import NETWORKS, Model


def test_only_one_network_learns_of_features():
    assert [name for name in NETWORKS if Model(name).of_features] == ["mlp"]
    assert not Model("timm:resnet18").of_features


def test_a_network_that_there_is_not_is_refused_with_the_nearest_name():
    with pytest.raises(ValueError, match="no network 'mpl'; did you mean mlp?"):
        Model("mpl")
    with pytest.raises(ValueError, match="mlp starts from random ones"):
        Model("mlp", weights="pretrained")
