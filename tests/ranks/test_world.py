import socket

import pytest
import torch

from concont.errors import UsageError
from concont.ranks import world
from concont.ranks.world import World


class Store:
    """One that all ranks share, in this process."""

    def __init__(self, **content):
        self.content = content

    def set(self, key, value):
        self.content[key] = value

    def get(self, key):
        return self.content[key].encode()

    def check(self, keys):
        return set(keys) <= self.content.keys()


@pytest.fixture
def ranks(monkeypatch):
    """This process as rank 1 of two; rank 0 has said what the test puts into the store."""

    def pose(timeout=1.0, rank=1, **content):
        posed = World(size=2, rank=rank, timeout=timeout, store=Store(**content))
        monkeypatch.setattr(world, "WORLD", posed)
        return posed.store

    return pose


def test_a_process_alone_is_rank_0_of_one(monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    assert (world.size(), world.rank(), world.leads()) == (1, 0, True)
    assert not world.is_started_as_rank()
    world.form(torch.device("cpu"), 1.0)
    world.meet("here")
    world.agree({"data": 1})
    with world.lead_first("images"):
        pass
    assert world.any_rank(True, False) == (True, False)
    assert world.slowest(1.5) == 1.5
    world.leave()


@pytest.mark.parametrize(
    ("size", "rank", "started"), [("2", "0", True), ("1", "0", False), ("x", "0", False)]
)
def test_a_launcher_says_in_the_environment_that_there_are_ranks(monkeypatch, size, rank, started):
    monkeypatch.setenv("WORLD_SIZE", size)
    monkeypatch.setenv("RANK", rank)
    assert world.is_started_as_rank() is started


def test_a_restart_is_known_by_torchruns_count(monkeypatch):
    monkeypatch.delenv(world.RESTARTS, raising=False)
    assert not world.is_restarted()
    for count, restarted in (("0", False), ("1", True), ("12", True)):
        monkeypatch.setenv(world.RESTARTS, count)
        assert world.is_restarted() is restarted


def test_ranks_that_differ_are_refused_by_what_differs(ranks):
    ranks(**{"facts/1/0": '{"data": "a", "step": "3"}', "agreed/2/0": ""})
    with pytest.raises(UsageError, match=r"rank 1 is not like rank 0 \(step: 4, not 3\)"):
        world.agree({"data": "a", "step": 4})


def test_ranks_that_are_alike_are_not(ranks):
    ranks(**{"facts/1/0": '{"data": "a"}', "agreed/2/0": ""})
    world.agree({"data": "a"})


def test_a_rank_that_does_not_come_is_waited_for_so_long(ranks):
    ranks(timeout=0.1)
    with pytest.raises(world.LostRank, match=r"did not come within 0\.1 s"):
        world.meet("here")


def test_a_rank_that_has_ended_is_not_waited_for(ranks):
    ranks(timeout=1000.0, ended="")
    with pytest.raises(world.LostRank, match="another rank has ended"):
        world.meet("here")


def test_rank_0_goes_first(ranks):
    store = ranks(timeout=0.1, rank=0)
    with world.lead_first("images"):
        assert not store.check(["images/1"])
    assert store.check(["images/1"])
    ranks(**store.content)
    with world.lead_first("images"):
        pass
    ranks(ended="")
    with pytest.raises(world.LostRank), world.lead_first("images"):
        pass


def test_what_rank_0_fails_at_the_others_do_not_begin(ranks):
    store = ranks(rank=0)
    with pytest.raises(UsageError), world.lead_first("images"):
        raise UsageError("no such image")
    assert not store.check(["images/1"])


def test_a_port_in_use_is_named(monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        given = {"RANK": 0, "WORLD_SIZE": 2, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        for name, value in given.items():
            monkeypatch.setenv(name, str(value))
        with pytest.raises(UsageError, match=f"127.0.0.1:{port} is in use by another program"):
            world.connect()
    world.leave()


def test_an_environment_without_an_address_is_refused(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "0")
    for name in ("MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(UsageError, match="MASTER_ADDR, MASTER_PORT not set: start ranks by torchr"):
        world.connect()


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("RANK", "x", "RANK is 'x', no number: start ranks by torchrun"),
        ("RANK", "-1", "RANK is '-1', no number"),
        ("RANK", "2", "RANK is 2; of WORLD_SIZE 2 it must be 0 to 1"),
        ("RANK", "9" * 5000, "RANK is '9"),
        ("LOCAL_RANK", "\x1b[31m", r"LOCAL_RANK is '\\x1b\[31m', no number"),
        ("WORLD_SIZE", "", "WORLD_SIZE is '', no number"),
    ],
)
def test_ranks_that_are_no_numbers_are_refused_at_once(monkeypatch, name, value, said):
    """Else they would end in a traceback, or wait for minutes for ranks that do not exist."""
    given = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}
    for each, text in {**given, name: value}.items():
        monkeypatch.setenv(each, text)
    with pytest.raises(UsageError, match=said):
        world.connect()
    assert World() == world.WORLD


def test_ranks_with_gpus_meet_before_they_wait_for_these(ranks, monkeypatch):
    met = []
    monkeypatch.setattr(world, "_largest", met.append)
    ranks()
    world.wait_for_all()
    assert met == []
    world.WORLD.on_gpu = True
    world.wait_for_all()
    assert met == [[0.0]]
