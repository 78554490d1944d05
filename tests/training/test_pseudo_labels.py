"""The controller's last word, held against loops over rows."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from concont.config.resolve import resolve
from concont.core.balance import Fixed
from concont.core.controller import Controller, partial_confidence
from concont.data.sources import from_arrays
from concont.runs.folder import RunFolder
from concont.training.evaluate import predict_proba
from concont.training.prepare import prepare
from concont.training.pseudo_labels import (
    POINTS,
    describe_verdict,
    judge_training_rows,
    precision_at_recalls,
)


def judge(run):
    return judge_training_rows(run.settings.method, run.state, run.data)


def slow_precision(right, score, recall):
    """Lower a bar, score by score, until enough of all right ones are above it."""
    for bar in sorted(set(score), reverse=True):
        above = [r for r, s in zip(right, score, strict=True) if s >= bar]
        if sum(above) >= recall * sum(right) - 1e-6:
            return sum(above) / len(above)
    raise AssertionError


@pytest.mark.parametrize("levels", [5, 10_000])  # with many ties, and with hardly any
def test_precision_at_each_recall(levels):
    draw = np.random.default_rng(levels)
    score = draw.integers(levels, size=137) / levels
    right = draw.random(137) < 0.2 + 0.6 * score
    found = precision_at_recalls(right, score)
    slow = [slow_precision(right, score, k / POINTS) for k in range(1, POINTS + 1)]
    assert found == pytest.approx(slow, abs=1e-4)
    assert found[-1] < found[0]


def test_precision_is_1_where_scores_tell_all_and_nothing_where_nothing_is_right():
    right = np.arange(10) < 4
    assert precision_at_recalls(right, -np.arange(10.0)) == [1.0] * POINTS
    assert precision_at_recalls(right, np.zeros(10)) == [0.4] * POINTS
    assert precision_at_recalls(np.zeros(3, bool), np.arange(3.0)) is None
    assert precision_at_recalls(np.zeros(0, bool), np.zeros(0)) is None


def test_counts_by_class():
    torch.manual_seed(0)
    probs = torch.rand(60, 3).softmax(dim=1)
    candidates = torch.rand(60, 3) < 0.7
    candidates[torch.arange(60), torch.arange(60) % 3] = True
    controller = Controller(Fixed(0.6))
    verdict = controller.judge(probs, candidates, controller.init_state(60, 3))
    truth = torch.arange(60) % 3
    found = describe_verdict(verdict, truth)
    wanted = {"pseudo_labels": [0] * 3, "confident": [0] * 3, "confident_right": [0] * 3}
    for row in range(60):
        score, (label,) = partial_confidence(probs[row : row + 1], candidates[row : row + 1])
        wanted["pseudo_labels"][label] += 1
        if score >= 0.6:
            wanted["confident"][label] += 1
            wanted["confident_right"][label] += int(label == truth[row])
    assert {name: found[name] for name in wanted} == wanted
    assert 0 < sum(found["confident_right"]) < sum(found["confident"]) < 60

    right = (verdict.label == truth).numpy()
    inside = (probs * candidates).amax(dim=1).numpy()
    assert found["precision"] == {
        "p_score": precision_at_recalls(right, verdict.score.numpy()),
        "max_probability": precision_at_recalls(right, inside),
    }


def test_rows_without_a_true_label_are_left_out_of_precision_alone():
    controller = Controller(Fixed(0.0))
    every = torch.ones(4, 2, dtype=torch.bool)
    probs = torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.6, 0.4]])
    verdict = controller.judge(probs, every, controller.init_state(4, 2))
    found = describe_verdict(verdict, torch.tensor([-1, 0, 1, -1]))
    assert found["pseudo_labels"] == found["confident"] == [4, 0]
    assert found["confident_right"] is None
    assert found["precision"]["p_score"] == [1.0] * POINTS
    assert describe_verdict(verdict, torch.full((4,), -1))["precision"]["p_score"] is None


def test_a_run_leaves_it_and_its_training_is_not_touched(tmp_path, toy_arrays, toy_config):
    data = from_arrays(toy_arrays)
    run = prepare(resolve(toy_config), RunFolder(tmp_path / "run"), data)
    for _ in run.execute():
        pass
    found = run.folder.read_json("verdict.json")
    before = json.dumps({k: v.tolist() for k, v in run.state.method_state.items()})
    assert judge(run) == found
    assert json.dumps({k: v.tolist() for k, v in run.state.method_state.items()}) == before
    assert sum(found["pseudo_labels"]) == len(run.problem.rows)

    probs = predict_proba(run.state.nets.modules["online"], run.data.images.images)
    score, label = partial_confidence(probs, run.data.candidates)
    sure = score >= run.state.method_state["tau"][label]
    assert found["confident"] == torch.bincount(label[sure], minlength=2).tolist()
    assert sum(run.state.spent.values()) < run.state.seconds


@pytest.mark.parametrize(
    ("name", "more", "judged"),
    [("dpll", {"controlled": True}, True), ("dpll", {}, False), ("partial", {}, False)],
)
def test_only_a_method_with_a_controller_is_judged(
    tmp_path, toy_arrays, toy_config, name, more, judged
):
    settings = resolve({**toy_config, "method": {"name": name, **more}})
    run = prepare(settings, RunFolder(tmp_path / "run"), from_arrays(toy_arrays))
    assert (judge(run) is not None) is judged
    streamed = replace(settings, train=replace(settings.train, memory_share=0.0))
    again = prepare(streamed, RunFolder(tmp_path / "run"), from_arrays(toy_arrays))
    assert judge(again) == judge(run)
