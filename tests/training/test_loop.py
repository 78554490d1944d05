import copy
import itertools
from dataclasses import replace
from typing import ClassVar

import pytest
import torch

from concont.config.resolve import resolve
from concont.data.sources import from_arrays
from concont.methods.partial import Partial
from concont.runs.folder import RunFolder
from concont.runs.settings import Optimizer
from concont.training.loop import evaluate, fit, rate
from concont.training.prepare import prepare


def job(arrays, config, **sections):
    merged = {k: {**config.get(k, {}), **sections.get(k, {})} for k in {**config, **sections}}
    return prepare(resolve(merged), RunFolder("unused"), from_arrays(arrays))


def run(ready):
    return list(fit(ready.settings, ready.state, ready.data, ready.order, ready.test))


def weights(ready):
    return torch.cat([p.flatten() for p in ready.state.nets.online.state_dict().values()])


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("cosine", [1, 0.853553, 0.5, 0.146447, 0]),
        ("steps", [1, 1, 0.1, 0.01, 0.01]),  # at a half and at three quarters
        ("halving", [1, 0.5**1.25, 0.5**2.5, 0.5**3.75, 0.5**5]),
        ("constant", [1, 1, 1, 1, 1]),
    ],
)
def test_the_schedules(schedule, expected):
    optimizer = Optimizer(lr=3.0, schedule=schedule)
    found = [rate(optimizer, quarters / 4) / 3 for quarters in range(5)]
    assert found == pytest.approx(expected, abs=1e-6)


def test_the_rate_rises_over_the_warm_up_and_then_follows_its_schedule():
    plain, warmed = Optimizer(lr=2.0), Optimizer(lr=2.0, warmup=0.2)
    assert [rate(warmed, done) / rate(plain, done) for done in (0.0, 0.05, 0.1, 0.15)] == (
        pytest.approx([0.0, 0.25, 0.5, 0.75])
    )
    for done in (0.2, 0.5, 0.99):
        assert rate(warmed, done) == rate(plain, done)


def test_the_steps_fall_at_whole_epochs_whatever_the_length():
    optimizer = Optimizer(lr=1.0, schedule="steps")
    for epochs, steps in ((4, 7), (8, 3), (200, 11)):
        total = epochs * steps
        rates = [rate(optimizer, step / total) for step in range(total)]
        drops = [step for step in range(1, total) if rates[step] != rates[step - 1]]
        assert drops == [total // 2, total * 3 // 4]


@pytest.mark.parametrize("schedule", ["cosine", "steps", "halving", "constant"])
def test_the_learning_rate_follows_its_schedule(toy_arrays, toy_config, schedule):
    ready = job(toy_arrays, toy_config, optimizer={"schedule": schedule})
    rates = [
        ready.state.optimizer.param_groups[0]["lr"]
        for _ in fit(ready.settings, ready.state, ready.data, ready.order, ready.test)
    ]
    assert rates == pytest.approx([rate(ready.settings.optimizer, step / 6) for step in range(6)])
    assert rates[0] == 0.05


class Noting(Partial):
    """Notes which epoch it is told, of how many."""

    seen: ClassVar = []

    def losses(self, nets, state, batch):
        Noting.seen.append((batch.epoch.item(), batch.epochs.item()))
        return super().losses(nets, state, batch)


def test_the_method_is_told_the_epoch_also_after_a_resume(toy_arrays, toy_config):
    Noting.seen = []
    ready = job(toy_arrays, toy_config, train={"epochs": 4})
    settings = replace(ready.settings, method=Noting())
    assert ready.order.steps == 2
    steps = fit(settings, ready.state, ready.data, ready.order, ready.test)
    list(itertools.islice(steps, 3))
    steps.close()
    list(fit(settings, ready.state, ready.data, ready.order, ready.test))
    assert Noting.seen == [(epoch, 4) for epoch in (0, 0, 1, 1, 2, 2, 3, 3)]


def test_each_accuracy_is_its_own_networks(toy_arrays, toy_config):
    ready = job(toy_arrays, toy_config)
    answers = {"online": (5.0, -5.0), "key": (-5.0, 5.0)}  # always class 0, always class 1
    for name, bias in answers.items():
        classifier = ready.state.nets.modules[name].classifier
        torch.nn.init.zeros_(classifier.weight)
        with torch.no_grad():
            classifier.bias.copy_(torch.tensor(bias))
    ready.test.labels[:15] = 0
    ready.test.labels[15:] = 1
    row = evaluate(ready.settings.method, ready.state, ready.test)
    assert (row["accuracy"], row["accuracy_momentum"], row["accuracy_best"]) == (0.75, 0.25, 0.75)


def test_the_key_network_gathers_statistics_of_its_own(toy_arrays, toy_config):
    ready = job(toy_arrays, toy_config)
    modules = ready.state.nets.modules
    run(ready)
    online, key = (modules[name].backbone[1].running_mean for name in ("online", "key"))
    assert key.abs().sum() > 0
    assert not torch.allclose(online, key)


def test_dropout_in_an_own_network_is_seeded_and_resumed(toy_arrays, toy_config):
    def with_dropout():
        body = torch.nn.Sequential(
            torch.nn.Flatten(), torch.nn.Linear(64, 16), torch.nn.Dropout(0.5)
        )
        torch.nn.init.constant_(body[1].weight, 0.01)
        torch.nn.init.zeros_(body[1].bias)
        data = from_arrays(toy_arrays)
        return prepare(resolve(toy_config), RunFolder("unused"), data, body)

    whole = with_dropout()
    run(whole)
    first = with_dropout()
    steps = fit(first.settings, first.state, first.data, first.order, first.test)
    list(itertools.islice(steps, 3))
    saved = copy.deepcopy(first.state.state_dict())
    second = with_dropout()
    torch.rand(7)  # whatever else the process draws
    second.state.load_state_dict(saved)
    run(second)
    assert torch.equal(weights(whole), weights(second))


def test_a_state_from_another_kind_of_device_goes_on(toy_arrays, toy_config):
    first, second = job(toy_arrays, toy_config), job(toy_arrays, toy_config)
    saved = {**first.state.state_dict(), "device": "cuda", "views": torch.zeros(16).byte()}
    (group,) = saved["optimizer"]["param_groups"]
    group |= {"lr": torch.tensor(7.0), "fused": True}  # as a GPU has them
    second.state.load_state_dict(saved)
    (group,) = second.state.optimizer.param_groups
    assert (group["lr"], group["fused"]) == (0.05, None)
    assert run(second)[-1].row["accuracy"] is not None


def test_every_step_is_reported_and_every_evaluation_has_a_row(toy_arrays, toy_config):
    ready = job(toy_arrays, toy_config, train={"evaluate_every": 2})
    seen = run(ready)
    assert [p.step for p in seen] == [1, 2, 3, 4, 5, 6]  # 40 rows, batches of 16, three epochs
    assert [p.epoch_end for p in seen] == [False, True] * 3
    assert [p.row["epoch"] for p in seen if p.row] == [2, 3]  # and always the last epoch
    names = (
        "epoch step seconds images_per_s loss loss_part loss_reg loss_contrast confident "
        "pseudo_accuracy confident_precision thresholds accuracy accuracy_best accuracy_momentum "
        "pseudo_accuracy_partial pseudo_accuracy_unlabeled accuracy_in_set probability_on_sets "
        "share_in_sets"
    )
    assert set(names.split()) == set(seen[-1].row)


def test_the_same_seed_gives_the_same_run(toy_arrays, toy_config):
    one, two, other = (job(toy_arrays, toy_config, train={"seed": s}) for s in (1, 1, 2))
    rows = [[p.row for p in run(r) if p.row] for r in (one, two, other)]
    assert torch.equal(weights(one), weights(two))
    assert [r["loss"] for r in rows[0]] == [r["loss"] for r in rows[1]]
    assert not torch.equal(weights(one), weights(other))


def test_evaluating_changes_nothing_that_is_learned(toy_arrays, toy_config):
    often, once = (job(toy_arrays, toy_config, train={"evaluate_every": n}) for n in (1, 99))
    run(often), run(once)
    assert torch.equal(weights(often), weights(once))


def test_streaming_changes_nothing_that_is_learned(toy_arrays, toy_config):
    resident, streamed = (
        job(toy_arrays, toy_config, train={"memory_share": s}) for s in (1.0, 0.0)
    )
    assert type(resident.data.images) is not type(streamed.data.images)
    run(resident), run(streamed)
    assert torch.equal(weights(resident), weights(streamed))


def test_the_key_network_is_the_average_of_the_online_ones(toy_arrays, toy_config):
    ready = job(toy_arrays, toy_config)
    modules = ready.state.nets.modules
    average = [p.detach().clone() for p in modules["online"].parameters()]
    for _ in fit(ready.settings, ready.state, ready.data, ready.order, ready.test):
        for a, p in zip(average, modules["online"].parameters(), strict=True):
            a.mul_(0.9).add_(p.detach(), alpha=0.1)
    for a, p in zip(average, modules["key"].parameters(), strict=True):
        assert torch.allclose(a, p, atol=1e-6)


def test_a_state_saved_at_any_step_goes_on_to_the_same_end(toy_arrays, toy_config):
    whole = job(toy_arrays, toy_config)
    expected = run(whole)
    for stop in range(1, 6):
        first, second = job(toy_arrays, toy_config), job(toy_arrays, toy_config)
        steps = fit(first.settings, first.state, first.data, first.order, first.test)
        list(itertools.islice(steps, stop))
        second.state.load_state_dict(first.state.state_dict())
        rest = run(second)
        assert torch.equal(weights(whole), weights(second))
        for name, tensor in whole.state.method_state.items():
            assert torch.equal(tensor, second.state.method_state[name])
        timeless = [
            {k: v for k, v in p.row.items() if k not in ("seconds", "images_per_s")}
            for p in (expected[-1], rest[-1])
        ]
        assert timeless[0] == timeless[1]


def test_a_method_without_a_key_network(toy_arrays, toy_config):
    ready = job(toy_arrays, {**toy_config, "method": {"name": "partial"}})
    row = run(ready)[-1].row
    assert row["accuracy_momentum"] is None
    assert row["loss_contrast"] is None
    assert row["thresholds"] is None
    assert list(ready.state.nets.modules) == ["online"]


def test_a_row_has_the_thresholds_that_decide(toy_arrays, toy_config):
    toy_config["method"] |= {"balance": "cpl", "threshold": 0.8}
    ready = job(toy_arrays, toy_config)
    thresholds = run(ready)[-1].row["thresholds"]
    assert thresholds == ready.state.method_state["tau"].tolist()
    assert 0 <= min(thresholds) <= max(thresholds) <= 0.8 + 1e-6
    assert thresholds != pytest.approx([0.8, 0.8])  # but lowered


def test_learning_lowers_the_loss_and_finds_the_classes(toy_arrays, toy_config):
    ready = job(toy_arrays, toy_config, train={"epochs": 30})
    rows = [p.row for p in run(ready) if p.row]
    assert rows[-1]["loss_part"] < 0.5 * rows[0]["loss_part"]
    assert rows[-1]["accuracy"] == 1.0
