import pytest
import torch
from torch import nn

from concont.errors import UsageError
from concont.nets.foreign import count_features, refuse_misfit, warn_if_idle

SHAPE = (1, 8, 8)


class Returning(nn.Module):
    """Gives what a function makes of flat images."""

    def __init__(self, make):
        super().__init__()
        self.make, self.layer = make, nn.Linear(64, 5)

    def forward(self, images):
        return self.make(self, self.layer(images.flatten(1)))


WRONG = {
    "it gave a tuple": lambda self, x: (x, x),
    "it gave a list": lambda self, x: [x],
    r"it gave \(2, 5, 1\) for 2 inputs": lambda self, x: x[..., None],
    r"it gave \(10,\)": lambda self, x: x.flatten(),
    r"it gave \(1, 10\)": lambda self, x: x.view(1, -1),
    r"it gave \(2, 0\)": lambda self, x: x[:, :0],
    "it gave int64": lambda self, x: x.argsort(dim=1),
    "it gave float64": lambda self, x: x.double(),
    "not finite": lambda self, x: x / 0,
    r"batch of shape \(2, 1, 8, 8\): ValueError: odd \\x1b\[31m": lambda self, x: odd(),
    "it gave a dict": lambda self, x: {"in training": x} if self.training else x,
    "it gave 3 features in evaluation, 5 in training": lambda self, x: (
        x if self.training else x[:, :3]
    ),
    r"it gave \(2, 7\) for 3 inputs": lambda self, x: (
        x if len(x) == 2 else x.flatten()[:14].view(2, 7)
    ),
}


def odd():
    raise ValueError("odd\n\x1b[31m")


@pytest.mark.parametrize("message", WRONG)
def test_a_model_that_returns_the_wrong_thing_is_refused_in_one_line(message):
    with pytest.raises(UsageError, match=message) as caught:
        refuse_misfit(Returning(WRONG[message]), SHAPE)
    assert "\n" not in str(caught.value)


def test_a_model_whose_weights_no_gradient_reaches_is_told(caplog):
    warn_if_idle(Returning(lambda self, x: x), SHAPE)
    warn_if_idle(nn.Flatten(), SHAPE)  # has no weights
    warn_if_idle(Returning(lambda self, x: x).requires_grad_(False), SHAPE)  # frozen on purpose
    assert caplog.text == ""
    idle = Returning(lambda self, x: x.detach())
    refuse_misfit(idle, SHAPE)  # it may only be about to predict
    assert caplog.text == ""
    warn_if_idle(idle, SHAPE)
    assert "no gradient reaches the model's weights" in caplog.text


def test_what_is_no_module_is_refused():
    with pytest.raises(UsageError, match=r"is a class; give one of its objects: Returning\(\)"):
        refuse_misfit(Returning, SHAPE)
    with pytest.raises(UsageError, match=r"must be a torch.nn.Module, not function"):
        refuse_misfit(odd, SHAPE)


def test_looking_changes_nothing():
    model = nn.Sequential(nn.BatchNorm2d(1), nn.Dropout(), nn.Flatten(), nn.Linear(64, 5))
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    stream = torch.get_rng_state()
    refuse_misfit(model, SHAPE)
    assert all(tensor.equal(before[name]) for name, tensor in model.state_dict().items())
    assert torch.get_rng_state().equal(stream)
    assert count_features(model, SHAPE) == 5
