import logging
import os
from dataclasses import replace

import pytest
import torch
from torch import nn

from concont.config.own_network import describe_network, load_network, take_network
from concont.config.resolve import read_settings, resolve, write_yaml
from concont.errors import UsageError

CODE = """
from torch import nn

def make():
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 12))

class Body(nn.Flatten):
    pass

def fails():
    raise ValueError("no\\nsuch file")

nothing, wrong = 5, list
"""


@pytest.fixture
def code(tmp_path):
    path = tmp_path / "net.py"
    path.write_text(CODE)
    return path


@pytest.fixture
def settings():
    return resolve({"data": {"source": "digits"}})


def test_a_function_or_a_class_makes_a_network(code):
    network, source = load_network(f"{code}:make", seed=3)
    assert isinstance(network[1], nn.Linear)
    assert source.reference == f"{code}:make"
    assert type(load_network(f"{code}:Body")[0]).__name__ == "Body"
    assert isinstance(load_network("torch.nn:Flatten")[0], nn.Flatten)
    assert describe_network(nn.Flatten()) == "torch.nn.modules.flatten:Flatten"


def test_its_first_weights_are_of_the_seed_alone(code):
    before = torch.get_rng_state()
    first, same, other = (load_network(f"{code}:make", seed)[0][1].weight for seed in (3, 3, 4))
    assert first.equal(same)
    assert not first.equal(other)
    assert torch.get_rng_state().equal(before)


REFUSED = {
    "write it as path/to/file.py:make or package.module:make": "make",
    "No such file": "nosuch.py:make",
    "net.py holds no function nosuch": "{code}:nosuch",
    "net.py holds no function nothing": "{code}:nothing",
    "must return a torch.nn.Module, not list": "{code}:wrong",
    "fails: ValueError: no such file": "{code}:fails",
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_makes_no_network_is_refused_in_one_line(code, message):
    with pytest.raises(UsageError, match=message) as caught:
        load_network(REFUSED[message].format(code=code))
    assert "\n" not in str(caught.value)


def test_settings_know_it_by_name_and_digest_and_never_by_its_folder(code, settings, tmp_path):
    named, network = take_network(settings, f"{code}:make")
    assert isinstance(network, nn.Module)
    assert (named.model.own, len(named.model.own_digest)) == (f"{code}:make", 16)
    assert named.hash() != settings.hash()
    (tmp_path / "other").mkdir()
    moved = tmp_path / "other" / "net.py"
    moved.write_text(CODE)
    assert take_network(settings, f"{moved}:make")[0].hash() == named.hash()
    moved.write_text(CODE + "# changed\n")
    assert take_network(settings, f"{moved}:make")[0].hash() != named.hash()
    path = tmp_path / "config.yaml"
    path.write_text(write_yaml(named))
    assert read_settings(path).hash() == named.hash()


def test_what_settings_name_is_not_run_for_that(code, settings, caplog):
    assert take_network(settings, None) == (settings, None)
    named, _ = take_network(settings, f"{code}:make")
    with pytest.raises(UsageError, match=r"net\.py:make is a network of your own, which is run on"):
        take_network(named, None)
    with pytest.raises(UsageError, match="was trained with network .*make, not with .*Body"):
        take_network(named, f"{code}:Body")
    with caplog.at_level(logging.WARNING):
        take_network(named, f"{code}:make")
        assert not caplog.messages
        code.write_text(CODE + "# changed\n")
        take_network(named, f"{code}:make")
    assert "has changed since these settings were written" in caplog.text
    in_python = replace(settings, model=replace(settings.model, own="__main__:Body"))
    assert take_network(in_python, f"{code}:make")[0] == in_python


def test_a_method_without_a_network_takes_none(code):
    settings = resolve({"data": {"source": "digits"}, "method": {"name": "sspl"}})
    with pytest.raises(UsageError, match="sspl trains no network; leave --model out"):
        take_network(settings, f"{code}:make")


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "net.py")
    with pytest.raises(UsageError, match=r"net\.py: not a plain file"):
        load_network(f"{tmp_path}/net.py:make")
