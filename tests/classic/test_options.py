import inspect
from dataclasses import fields

import pytest

from concont.classic.options import CLASSICS
from concont.config.resolve import resolve
from concont.errors import UsageError


@pytest.mark.parametrize("name", CLASSICS)
def test_defaults_are_those_of_the_classifier(name):
    options = CLASSICS[name]()
    model = options.make_classifier("cpu", seed=7)
    signature = inspect.signature(type(model)).parameters
    for field in fields(options):
        if field.name not in ("name", "size"):
            assert getattr(model, field.name) == getattr(options, field.name)
            assert signature[field.name].default == getattr(options, field.name), field.name
    assert model.device == "cpu"
    if "random_state" in signature:
        assert model.random_state == 7


def test_settings_reach_the_classifier():
    plain = {"method": {"name": "parm", "lam": "cv", "mu": 0.5, "k": 4}}
    model = resolve(plain).method.make_classifier("cpu", 1)
    assert (model.lam, model.mu, model.k) == ("cv", 0.5, 4)


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ({"name": "sspl", "k": 1}, "method.k is 1"),
        ({"name": "sspl", "size": 30}, "method.size is 30"),
        ({"name": "parm", "lam": "guess"}, "method.lam"),
        ({"name": "parm", "mu": 0}, "method.mu"),
        ({"name": "sspl", "lam": 1}, "unknown setting method.lam"),
    ],
)
def test_wrong_settings_are_refused(method, message):
    with pytest.raises(UsageError, match=message):
        resolve({"method": method})


def test_unlabelled_rows_are_used_unless_told_otherwise():
    assert resolve({"method": {"name": "sspl"}}).data.unlabeled is True
    assert (
        resolve({"method": {"name": "parm"}, "data": {"unlabeled": False}}).data.unlabeled is False
    )


def test_a_result_does_not_depend_on_how_networks_are_trained():
    asked = {"method": {"name": "sspl"}, "data": {"source": "digits"}}
    first, other = (resolve({**asked, "optimizer": {"lr": lr}}).hash() for lr in (0.1, 0.2))
    assert first == other
    assert resolve({**asked, "method": {"name": "sspl", "k": 5}}).hash() != first
    with pytest.raises(UsageError, match="sspl trains no network"):
        _ = resolve(asked).network_method
