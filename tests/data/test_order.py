from dataclasses import replace

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import example, given

from concont.data.order import Order
from concont.data.problem import make_problem
from concont.data.sources import from_arrays
from concont.runs.settings import Data, Train
from strategies import seeds


@pytest.fixture
def problem(toy_arrays):
    return make_problem(from_arrays(toy_arrays), Data(labeled=10, ambiguity=0.0, unlabeled=True))


def test_an_epoch_visits_rows_once_and_drops_the_short_batch(problem):
    order = Order.of(problem, Train(batch_size=16))
    assert order.steps == 2
    rows = order.epoch(0)
    assert rows.shape == (2, 16)
    assert len(rows.unique()) == 32


def test_the_order_depends_on_seed_and_epoch_alone(problem):
    order = Order.of(problem, Train(batch_size=16))
    assert torch.equal(order.epoch(3), Order.of(problem, Train(batch_size=16)).epoch(3))
    assert not torch.equal(order.epoch(3), order.epoch(4))
    assert not torch.equal(order.epoch(3), Order.of(problem, Train(batch_size=16, seed=2)).epoch(3))


def test_a_share_of_each_batch_is_partial(problem):
    train = Train(batch_size=16, partial_share=0.75)
    order, asked_for = (Order.of(problem, train, first) for first in (False, True))
    partial = torch.from_numpy(~problem.candidates.all(axis=1))
    rows = order.epoch(0)
    assert partial[rows].tolist() == [[True] * 12 + [False] * 4] * 2
    assert torch.equal(asked_for.epoch(0), rows)  # they are first either way
    assert order.leading_partial == asked_for.leading_partial == 12
    visits = torch.bincount(rows[partial[rows]], minlength=40)[partial]
    assert visits.min() >= 2  # 24 visits to 10 rows: two whole passes and a part
    assert visits.max() <= 3


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_the_ends_of_the_share(problem, share):
    order = Order.of(problem, Train(batch_size=8, partial_share=share))
    partial = torch.from_numpy(~problem.candidates.all(axis=1))
    assert (partial[order.epoch(1)] == bool(share)).all()
    assert order.leading_partial == 8 * share


def test_a_batch_is_never_larger_than_the_data(problem):
    order = Order.of(problem, Train(batch_size=256))
    assert (order.batch_size, order.steps) == (40, 1)


def test_partial_rows_are_first_where_that_is_asked_for(problem):
    plain, first = (Order.of(problem, Train(), asked) for asked in (False, True))
    partial = torch.from_numpy(~problem.candidates.all(axis=1))
    assert not partial[plain.epoch(0)][0, :10].all()
    assert plain.leading_partial is None
    assert partial[first.epoch(0)][0, :10].all()


def sorted_order(rows, n_partial, batch, seed):
    stream = torch.Generator().manual_seed(seed)
    shuffled = torch.randperm(rows, generator=stream)
    return Order(shuffled[:n_partial], shuffled[n_partial:], batch, None, seed, partial_first=True)


@st.composite
def orders(draw):
    rows = draw(st.integers(2, 120))
    n_partial, batch = draw(st.integers(1, rows)), draw(st.integers(1, rows))
    return sorted_order(rows, n_partial, batch, draw(seeds))


@given(order=orders(), epoch=st.integers(0, 50))
@example(order=sorted_order(64, 64, 16, 1), epoch=0)  # all partial
@example(order=sorted_order(64, 1, 16, 1), epoch=0)
@example(order=sorted_order(50, 20, 50, 1), epoch=0)  # one batch of everything
@example(order=sorted_order(511, 300, 256, 1), epoch=1)  # one batch, the rest is dropped
@example(order=sorted_order(1280, 448, 64, 1), epoch=0)  # often more than there is room for
def test_a_sorted_epoch_is_the_shuffled_one_with_partial_rows_first(order, epoch):
    found, shuffled = order.epoch(epoch), replace(order, partial_first=False).epoch(epoch)
    assert found.shape == shuffled.shape == (order.steps, order.batch_size)
    assert torch.equal(found.flatten().sort()[0], shuffled.flatten().sort()[0])
    partial = torch.isin(found, order.partial)
    assert (partial.int().diff(dim=1) <= 0).all()  # first in their batch
    assert (partial.sum(dim=1) <= order.leading_partial).all()
    assert order.leading_partial <= order.batch_size
    assert torch.equal(found, order.epoch(epoch))


def test_sorting_moves_no_more_rows_than_it_must():
    order = sorted_order(1280, 448, 64, 1)
    found, shuffled = order.epoch(0), replace(order, partial_first=False).epoch(0)
    counts = torch.isin(shuffled, order.partial).sum(dim=1)
    excess = (counts - order.leading_partial).clamp(min=0).sum().item()
    moved = (~(found[:, :, None] == shuffled[:, None, :]).any(dim=2)).sum().item()
    assert moved == 2 * excess > 0


@pytest.mark.parametrize(
    ("rows", "n_partial", "batch", "room"),
    [
        (50_000, 5_000, 256, 32),  # 26 on average and one more
        (1437, 144, 64, 8),
        (64, 64, 16, 16),
        (64, 1, 16, 8),
        (12, 6, 4, 4),
    ],
)
def test_a_batch_has_room_for_its_share_and_little_more(rows, n_partial, batch, room):
    assert sorted_order(rows, n_partial, batch, 1).leading_partial == room
