import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from concont.core.memory import EMPTY, average_, empty_queue, push_, rising


@given(size=st.integers(0, 9), batches=st.lists(st.integers(1, 12), max_size=6))
def test_the_queue_keeps_the_newest_keys_in_order(size, batches):
    state = empty_queue(size, 1)
    seen = []
    for rows in batches:
        new = torch.arange(len(seen), len(seen) + rows)
        push_(state, new[:, None].float(), new % 3, new % 2 == 0)
        seen += new.tolist()
    kept = seen[-size:] if size else []
    filled = state["queue_label"] != EMPTY
    assert sorted(state["queue_z"][filled, 0].tolist()) == kept
    for slot in filled.nonzero()[:, 0]:
        number = int(state["queue_z"][slot, 0])
        assert state["queue_label"][slot] == number % 3
        assert state["queue_confident"][slot] == (number % 2 == 0)


def test_the_average_moves_parameters_and_no_statistics():
    online, key = nn.BatchNorm1d(2), nn.BatchNorm1d(2)
    nn.init.constant_(online.weight, 3.0)
    nn.init.constant_(key.weight, 1.0)
    online.running_mean.fill_(5.0)
    average_(key, online, momentum=0.75)
    assert key.weight.tolist() == [1.5, 1.5]
    assert key.running_mean.tolist() == [0.0, 0.0]


def test_a_momentum_that_is_a_tensor_averages_alike():
    online, one, two = nn.Linear(3, 2), nn.Linear(3, 2), nn.Linear(3, 2)
    two.load_state_dict(one.state_dict())
    average_(one, online, 0.75)
    average_(two, online, torch.tensor(0.75, dtype=torch.float64))
    for a, b in zip(one.parameters(), two.parameters(), strict=True):
        assert torch.allclose(a, b)
        assert b.dtype == torch.float32


def test_a_momentum_that_rises_reaches_its_value_and_stays():
    found = [rising(0.9, torch.tensor(float(step))).item() for step in (0, 1, 8, 80, 81, 1000)]
    assert found == pytest.approx([1 / 10, 2 / 11, 9 / 18, 81 / 90, 0.9, 0.9])
