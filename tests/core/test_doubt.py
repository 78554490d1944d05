import math

import pytest
import torch

from concont.core.doubt import BEGINS, LEAST, MEMORY, PACE, RETURNS, SURE, Doubt

SETS = torch.tensor([[1, 1, 0], [0, 1, 0], [1, 1, 1], [0, 1, 1]]).bool()
PROBS = torch.tensor([[0.2, 0.1, 0.7], [0.5, 0.3, 0.2], [0.3, 0.3, 0.4], [0.9, 0.05, 0.05]])
INDEX = torch.tensor([3, 0, 5, 1])
LATE, EARLY = torch.tensor(BEGINS), torch.tensor(BEGINS - 0.01)


@pytest.fixture
def state():
    state = Doubt(0.75).init_state(7, 3)
    state["outside"][:] = torch.tensor([0.8, 0.9, 0.9, 0.6, 0.9, 0.9, 0.9])
    state["inside_label"][:] = torch.tensor([1, 2, 0, 0, 0, 0, 0])
    state["outside_limit"][:] = torch.tensor([0.55, 0.7, 0.95])
    return state


def test_sets_above_the_limit_of_their_class_are_overruled_once_the_run_is_far_enough(state):
    doubt = Doubt(0.75)  # rows 3, 0, 5, 1: 0.6 > 0.55, 0.8 > 0.7, unlabelled, 0.9 < 0.95
    assert doubt.overrule(INDEX, SETS, state, LATE).tolist() == [True, True, False, False]
    assert not doubt.overrule(INDEX, SETS, state, EARLY).any()
    assert not doubt.overrule(INDEX, SETS, Doubt(0.75).init_state(7, 3), LATE).any()  # at first


def test_in_the_last_part_of_the_run_only_those_that_the_network_is_sure_of(state):
    doubt = Doubt(0.75)
    state["outside_limit"].fill_(0.5)
    for row, mass in ((3, SURE), (0, SURE - 0.01), (1, 1.0)):
        state["outside"][row] = mass
    before = doubt.overrule(INDEX, SETS, state, torch.tensor(RETURNS - 0.01))
    assert before.tolist() == [True, True, False, True]  # row 5 is unlabelled
    after = doubt.overrule(INDEX, SETS, state, torch.tensor(RETURNS))
    assert after.tolist() == [True, False, False, True]
    state["outside_limit"].fill_(0.99)  # trust leaves fewer
    assert doubt.overrule(INDEX, SETS, state, torch.tensor(1.0)).tolist() == [False] * 3 + [True]


def test_the_mass_outside_is_averaged_and_the_limits_move(state):
    doubt = Doubt(0.75)
    before = state["outside"].tolist()
    doubt.update(state, INDEX, SETS, PROBS)
    for row, mass in zip(INDEX.tolist(), [0.7, 0.7, 0.0, 0.9], strict=True):
        wanted = MEMORY * before[row] + (1 - MEMORY) * mass
        assert state["outside"][row].item() == pytest.approx(wanted, abs=1e-6)
    assert state["outside"][[2, 4, 6]].tolist() == pytest.approx([0.9] * 3)  # not in the batch
    assert state["inside_label"].tolist() == [1, 1, 0, 0, 0, 2, 0]  # rows 3, 0, 5, 1: 0, 1, 2, 1
    # Of the three partial rows one is of each class, as they were: two doubted, and one not.
    excess = [3 / 3 * (1 - 0.25), 3 / 3 * (1 - 0.25), 3 / 3 * (0 - 0.25)]
    wanted = [k * math.exp(PACE * e) for k, e in zip((0.55, 0.7, 0.95), excess, strict=True)]
    assert state["outside_limit"].tolist() == pytest.approx(wanted, abs=1e-6)


def test_a_batch_without_sets_moves_nothing(state):
    doubt, full = Doubt(0.75), torch.ones(4, 3).bool()
    before = state["outside_limit"].tolist()
    doubt.update(state, INDEX, full, PROBS)
    assert state["outside_limit"].tolist() == before


def test_no_class_loses_more_of_its_sets_than_another():
    """A network that takes one class for another contradicts all of its sets."""
    doubt, generator = Doubt(0.8), torch.Generator().manual_seed(0)
    state = doubt.init_state(1000, 3)
    label = torch.arange(1000) % 2
    sets = torch.eye(3).bool()[label]
    mass = 0.5 + torch.rand(1000, generator=generator) / 4 + label / 4  # of class 1 the higher
    probs = torch.where(sets, 1 - mass[:, None], mass[:, None] / 2)
    for _ in range(600):
        index = torch.randint(1000, (64,), generator=generator).unique()
        doubt.update(state, index, sets[index], probs[index])
    overruled = doubt.overrule(torch.arange(1000), sets, state, LATE)
    for each in (0, 1):
        assert overruled[label == each].float().mean().item() == pytest.approx(0.2, abs=0.06)


def test_in_the_end_as_many_are_doubted_as_trust_leaves():
    doubt, generator = Doubt(0.9), torch.Generator().manual_seed(0)
    state = doubt.init_state(1000, 2)
    sets = torch.tensor([[True, False]]).expand(1000, 2)
    mass = torch.rand(1000, generator=generator)
    probs = torch.stack([1 - mass, mass], dim=1)
    for _ in range(400):
        index = torch.randint(1000, (64,), generator=generator).unique()
        doubt.update(state, index, sets[index], probs[index])
    every = torch.arange(1000)
    overruled = doubt.overrule(every, sets, state, LATE)
    assert overruled.float().mean().item() == pytest.approx(0.1, abs=0.03)
    assert mass[overruled].min() > mass[~overruled].max() - 0.05


def test_a_network_that_contradicts_nobody_overrules_nothing():
    doubt = Doubt(0.5)
    state = doubt.init_state(4, 2)
    every, sets = torch.arange(4), torch.tensor([[True, False]]).expand(4, 2)
    probs = torch.tensor([[1 - LEAST / 2, LEAST / 2]]).expand(4, 2)
    for _ in range(200):
        doubt.update(state, every, sets, probs)
    assert not doubt.overrule(every, sets, state, LATE).any()
