import math

import pytest
import torch

from concont.errors import NonFiniteLoss
from concont.training.meter import Meter
from concont.types import StepOut


def step(total, right=1, count=2, **terms):
    return StepOut(
        total=torch.tensor(total),
        terms={name: torch.tensor(value) for name, value in terms.items()},
        metrics={"pseudo_accuracy": (torch.tensor(right), torch.tensor(count))},
    )


def test_means_since_the_last_reading():
    meter = Meter(torch.device("cpu"))
    meter.add(step(1.0, right=1, count=1, loss_part=0.5))
    meter.add(step(2.0, right=0, count=3, loss_part=1.5))
    row = meter.read()
    assert (row["loss"], row["loss_part"], row["loss_reg"]) == (1.5, 1.0, None)
    assert row["pseudo_accuracy"] == 0.25  # over all rows, not a mean of means
    assert row["confident"] is None
    assert meter.read()["loss"] is None


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_the_first_bad_step_is_named_with_its_terms(bad):
    meter = Meter(torch.device("cpu"))
    meter.add(step(1.0, loss_part=0.5))
    meter.check()
    meter.add(step(bad, loss_part=0.25, loss_reg=bad))
    meter.add(step(math.nan, loss_part=math.nan))
    with pytest.raises(
        NonFiniteLoss, match=rf"at step 2: loss {bad}, loss_part 0.25, loss_reg {bad}"
    ):
        meter.check()


def test_the_meter_survives_a_checkpoint():
    meter, other = Meter(torch.device("cpu")), Meter(torch.device("cpu"))
    meter.add(step(1.0))
    other.load_state_dict(meter.state_dict())
    for each in (meter, other):
        each.add(step(4.0))
    assert meter.read() == other.read()
