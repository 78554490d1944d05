import math

import pytest
import torch

from concont.core.doubt import BEGINS, LEAST, MEMORY, PACE, Doubt, measure_outside

SETS = torch.tensor([[1, 1, 0], [0, 1, 0], [1, 1, 1], [0, 1, 1]]).bool()
PROBS = torch.tensor([[0.2, 0.1, 0.7], [0.5, 0.3, 0.2], [0.3, 0.3, 0.4], [0.9, 0.05, 0.05]])
INDEX = torch.tensor([3, 0, 5, 1])
LATE, EARLY = torch.tensor(BEGINS), torch.tensor(BEGINS - 0.01)


@pytest.fixture
def state():
    state = Doubt(0.75).init_state(7)
    state["outside"][:] = torch.tensor([0.4, 0.9, 0.9, 0.6, 0.9, 0.9, 0.9])
    state["outside_limit"].fill_(0.5)
    return state


def test_sets_above_the_limit_are_overruled_once_the_run_is_far_enough(state):
    doubt = Doubt(0.75)  # rows 3, 0, 5, 1: 0.6, 0.4, unlabelled, 0.9
    assert doubt.overrule(INDEX, SETS, state, LATE).tolist() == [True, False, False, True]
    assert not doubt.overrule(INDEX, SETS, state, EARLY).any()
    assert not doubt.overrule(INDEX, SETS, Doubt(0.75).init_state(7), LATE).any()  # at first


def test_the_mass_outside_is_averaged_and_the_limit_moves(state):
    doubt = Doubt(0.75)
    before = state["outside"].tolist()
    measured = measure_outside(SETS, PROBS)
    outside = [0.7, 0.7, 0.0, 0.9]
    assert measured.tolist() == pytest.approx(outside, abs=1e-6)
    doubt.update(state, INDEX, SETS, measured)
    for row, mass in zip(INDEX.tolist(), outside, strict=True):
        wanted = MEMORY * before[row] + (1 - MEMORY) * mass
        assert state["outside"][row].item() == pytest.approx(wanted, abs=1e-6)
    assert state["outside"][[2, 4, 6]].tolist() == pytest.approx([0.9] * 3)  # not in the batch
    limit = 0.5 * math.exp(PACE * (2 / 3 - 0.25))  # two of the three partial rows were doubted
    assert state["outside_limit"].item() == pytest.approx(limit, abs=1e-6)


def test_a_batch_without_sets_moves_nothing(state):
    doubt, full = Doubt(0.75), torch.ones(4, 3).bool()
    doubt.update(state, INDEX, full, measure_outside(full, PROBS))
    assert state["outside_limit"].item() == pytest.approx(0.5)


def test_in_the_end_as_many_are_doubted_as_trust_leaves():
    doubt, generator = Doubt(0.9), torch.Generator().manual_seed(0)
    state = doubt.init_state(1000)
    sets = torch.tensor([[True, False]]).expand(1000, 2)
    mass = torch.rand(1000, generator=generator)
    probs = torch.stack([1 - mass, mass], dim=1)
    for _ in range(400):
        index = torch.randint(1000, (64,), generator=generator).unique()
        doubt.update(state, index, sets[index], measure_outside(sets[index], probs[index]))
    every = torch.arange(1000)
    overruled = doubt.overrule(every, sets, state, LATE)
    assert overruled.float().mean().item() == pytest.approx(0.1, abs=0.03)
    assert mass[overruled].min() > mass[~overruled].max() - 0.05


def test_a_network_that_contradicts_nobody_overrules_nothing():
    doubt = Doubt(0.5)
    state = doubt.init_state(4)
    every, sets = torch.arange(4), torch.tensor([[True, False]]).expand(4, 2)
    probs = torch.tensor([[1 - LEAST / 2, LEAST / 2]]).expand(4, 2)
    for _ in range(200):
        doubt.update(state, every, sets, measure_outside(sets, probs))
    assert not doubt.overrule(every, sets, state, LATE).any()
