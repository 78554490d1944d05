"""What a captured step may not do on a GPU, found on machines that have none."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException

from concont.augment.policies import load_policy
from concont.config.layers import merge
from concont.config.resolve import resolve
from concont.data.sources import from_arrays
from concont.methods.partial import Partial
from concont.runs.folder import RunFolder
from concont.training.evaluate import predict_proba
from concont.training.prepare import prepare
from fake_gpu import GPU, CapturedAlike, Refused, on_fake_gpu
from toys import EVERY, small_queue

pytestmark = pytest.mark.filterwarnings("ignore:Accessing the data pointer of FakeTensor")

OTHERS = {
    "soft": {"name": "concont", "pseudo": "soft", "contrast_set": "queries"},
    "part": {"name": "concont", "part_loss": "uniform", "part_rows": "all", "branches": "two"},
    "teacher": {"name": "concont", "teacher": "momentum", "momentum_rises": True},
    "weak-partial": {"name": "concont", "weak_rows": "partial", "teacher": "momentum"},
    "blend": {"name": "concont", "weak_rows": "partial", "teacher": "momentum", "part_blend": 0.5},
    "part-mean": {"name": "partial", "part_mean": "partial"},
}
WITH_VOTES = {
    "votes": {"name": "concont", "vote_strength": 2.0, "vote_strength_end": 0.0},
    "votes-trust": {"name": "concont", "trust": 0.9, "partial_soft": True},
    "votes-partial": {"name": "partial"},
}
VIEWS = {
    "colours": {"weak": "pico", "strong": "measured"},
    "policy": {"weak": "pad4", "strong": "dpll"},
    "svhn": {"flip": False, "strong": "dpll-svhn"},
}


def job(arrays, config, model=None, **sections):
    return prepare(
        resolve(merge(config, sections)), RunFolder("unused"), from_arrays(arrays), model
    )


def list_kept(state):
    """Every tensor that outlives a step: where a captured one reads and writes."""
    modules, meter = state.nets.modules.values(), state.meter
    momenta = [value for each in state.optimizer.state.values() for value in each.values()]
    learned = [tensor for module in modules for tensor in (*module.parameters(), *module.buffers())]
    counted = [meter.sums, meter.counts, meter.bad, state.steps_on_device]
    return [*state.method_state.values(), *momenta, *learned, *counted]


def take_steps(ready, monkeypatch, votes=False):
    """One that makes what is made once, and a second."""
    with on_fake_gpu(ready, monkeypatch, votes) as (step, inputs), CapturedAlike():
        step.run(*inputs)
        kept = list_kept(step.state)
        step.run(*inputs)
        for before, after in zip(kept, list_kept(step.state), strict=True):
            assert after is before  # else a graph would write where nobody reads
            assert after.device == GPU


@pytest.mark.parametrize("name", [*EVERY, *OTHERS, *WITH_VOTES])
def test_a_method_asks_for_nothing_that_cannot_be_captured(
    toy_arrays, toy_config, monkeypatch, name
):
    method = {**EVERY, **OTHERS, **WITH_VOTES}[name]
    ready = job(toy_arrays, toy_config | {"method": small_queue(method)})
    take_steps(ready, monkeypatch, votes=name in WITH_VOTES)


@pytest.mark.parametrize("views", VIEWS.values(), ids=VIEWS)
def test_views_ask_for_nothing_that_cannot_be_captured(toy_config, monkeypatch, views):
    images = np.zeros((40, 24, 24, 3), dtype=np.uint8)
    arrays = {"x_train": images, "y_train": np.arange(40) % 2}
    model = {"name": "narrow-resnet18", "width": 4, "hidden": 8, "embedding": 8}
    ready = job(arrays, toy_config | {"views": views, "model": model})
    load_policy(ready.settings.views.strong.policy)  # once, so in a step before the captured one
    take_steps(ready, monkeypatch)


@pytest.mark.parametrize("backbone_rate", [0.0, 0.5])
def test_rows_of_features_and_two_rates(toy_config, monkeypatch, backbone_rate):
    arrays = {"x_train": np.random.RandomState(0).rand(40, 5), "y_train": np.arange(40) % 2}
    views = {"strong": {"noise": 1.0, "masked": 0.3}}
    model = {**toy_config["model"], "name": "mlp"}
    config = toy_config | {"views": views, "model": model}
    take_steps(job(arrays, config, optimizer={"backbone_rate": backbone_rate}), monkeypatch)


def test_a_network_of_ones_own(toy_arrays, toy_config, monkeypatch):
    own = nn.Sequential(nn.Flatten(), nn.Linear(64, 12), nn.Dropout(0.1))
    take_steps(job(toy_arrays, toy_config, own), monkeypatch)


def test_networks_run_in_bfloat16_and_losses_in_float32(toy_arrays, toy_config, monkeypatch):
    with on_fake_gpu(job(toy_arrays, toy_config), monkeypatch) as (step, _):
        network = step.state.nets.online
        (features,) = network.features(torch.empty(4, 1, 8, 8, device=GPU))
        assert features.dtype == torch.bfloat16
        assert network.logits(features).dtype == network.embed(features).dtype == torch.float32


@pytest.mark.parametrize("name", ["concont", "concont-da", "concont-trust", "dpll-cpl"])
def test_a_run_is_judged_where_it_was_trained(toy_arrays, toy_config, monkeypatch, name):
    ready = job(toy_arrays, toy_config | {"method": small_queue(EVERY[name])})
    with on_fake_gpu(ready, monkeypatch, votes=True) as (step, _):
        data, state = step.data, step.state
        images = torch.empty(len(data.truth), 1, 8, 8, dtype=torch.uint8, device=GPU)
        probs = predict_proba(state.nets.modules["online"], images)
        verdict = ready.settings.network_method.judge(
            probs, data.candidates, state.method_state, data.weights
        )
        assert verdict.label.device == verdict.confident.device == GPU


def look(state, batch, rows):
    return rows if rows.sum().item() > 0 else -rows


def choose(state, batch, rows):
    return rows[batch.truth >= 0]


def fetch(state, batch, rows):
    return rows[torch.arange(len(rows))]


def copy(state, batch, rows):
    return rows * torch.tensor([2.0], device=GPU)


def store(state, batch, rows):
    state["table"].index_copy_(0, batch.index, rows.bfloat16())
    return rows


def replace_table(state, batch, rows):
    state["table"] = state["table"] + 1
    return rows


@dataclass(frozen=True)
class Odd(Partial):
    """Does one thing in its loss that a captured step cannot do, or not as meant."""

    odd: object = None

    def init_state(self, candidates, dim):
        return {"table": torch.zeros(len(candidates))}

    def losses(self, nets, state, batch):
        out = super().losses(nets, state, batch)
        rows = out.total.detach().expand(len(batch.index))
        return replace(out, total=out.total + self.odd(state, batch, rows).mean())


@pytest.mark.parametrize(
    ("odd", "error"),
    [
        (look, DataDependentOutputException),
        (choose, DynamicOutputShapeException),
        (fetch, Refused),
        (copy, Refused),
        (store, Refused),
        (replace_table, AssertionError),
    ],
)
def test_what_cannot_be_captured_is_found(toy_arrays, toy_config, monkeypatch, odd, error):
    ready = job(toy_arrays, toy_config | {"method": {"name": "partial"}})
    ready = replace(ready, settings=replace(ready.settings, method=Odd(odd=odd)))
    with pytest.raises(error):
        take_steps(ready, monkeypatch)
