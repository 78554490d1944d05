import math

import pytest
import torch

from concont.errors import ConcontError, NonFiniteLoss
from concont.training.meter import Meter
from concont.types import StepOut


def step(total, right=1, count=2, **terms):
    return StepOut(
        total=torch.tensor(total),
        terms={name: torch.tensor(value) for name, value in terms.items()},
        metrics={"pseudo_accuracy": (torch.tensor(right), torch.tensor(count))},
    )


class Counted(Meter):
    """Takes steps as a run does: columns first, then the count."""

    def __init__(self):
        super().__init__(torch.device("cpu"))
        self.steps = torch.zeros((), dtype=torch.float64)

    def take(self, out):
        self.match_columns(out)
        self.steps += 1
        self.add(out, self.steps)


def test_means_since_the_last_reading():
    meter = Counted()
    meter.take(step(1.0, right=1, count=1, loss_part=0.5))
    meter.take(step(2.0, right=0, count=3, loss_part=1.5))
    row = meter.read()
    assert (row["loss"], row["loss_part"], row["loss_reg"]) == (1.5, 1.0, None)
    assert row["pseudo_accuracy"] == 0.25  # over all rows, not a mean of means
    assert row["confident"] is None
    assert meter.read()["loss"] is None


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_the_first_bad_step_is_named_with_its_terms(bad):
    meter = Counted()
    meter.take(step(1.0, loss_part=0.5, loss_reg=0.5))
    meter.check()
    meter.take(step(bad, loss_part=0.25, loss_reg=bad))
    meter.take(step(math.nan, loss_part=math.nan, loss_reg=1.0))
    with pytest.raises(
        NonFiniteLoss, match=rf"at step 2: loss {bad}, loss_part 0.25, loss_reg {bad}"
    ):
        meter.check()


def test_the_meter_survives_a_checkpoint():
    meter, other = Counted(), Counted()
    meter.take(step(1.0))
    other.load_state_dict(meter.state_dict())
    for each in (meter, other):
        each.take(step(4.0))
    assert meter.read() == other.read()


def test_a_term_or_metric_with_a_new_name_is_a_column_of_its_own():
    meter, pair = Counted(), (torch.tensor(3), torch.tensor(4))
    out = StepOut(torch.tensor(2.0), {"loss_smooth": torch.tensor(5.0)}, {"agreement": pair})
    for _ in range(2):
        meter.take(out)
    row = meter.read()
    assert (row["loss"], row["loss_smooth"], row["agreement"]) == (2.0, 5.0, 0.75)
    assert row["loss_part"] is None  # every line has the usual ones


def test_a_report_that_changes_is_refused_and_not_dropped():
    meter = Counted()
    meter.take(step(1.0))
    with pytest.raises(ConcontError, match="reported loss, late, pseudo_accuracy; those before"):
        meter.take(step(1.0, late=2.0))


@pytest.mark.parametrize("name", ["loss", "accuracy", "thresholds", "pseudo_accuracy"])
def test_a_term_may_not_take_a_name_of_the_line(name):
    with pytest.raises(ConcontError, match=f"a term cannot be called {name}"):
        Counted().take(step(1.0, **{name: 2.0}))


@pytest.mark.parametrize("columns", [7, 9])
def test_a_checkpoint_from_before_columns_were_named_is_read(columns):
    meter = Counted()
    old = {"steps": torch.tensor(2.0), "bad": torch.full((5,), -1.0, dtype=torch.float64)}
    old["sums"] = torch.arange(columns, dtype=torch.float64)
    old["counts"] = 2 * torch.ones(columns, dtype=torch.float64)
    old["counts"][2:5] = 0  # a method without loss_reg, loss_contrast and confident
    meter.load_state_dict(old)
    meter.take(step(3.0, right=1, count=1, loss_part=2.0))
    row = meter.read()
    assert (row["loss"], row["loss_part"], row["loss_reg"]) == (1.0, 1.0, None)
    assert row["pseudo_accuracy"] == 2.0  # (5 + 1) / (2 + 1)
    assert row["confident"] is None
