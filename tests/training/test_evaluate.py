import numpy as np
import pytest
import torch
from torch import nn

from concont.data.problem import make_problem
from concont.data.sources import from_arrays
from concont.nets.network import build
from concont.runs.model_settings import Model
from concont.runs.settings import Data
from concont.training.evaluate import (
    AT_ONCE,
    TestSet,
    accuracy,
    measure_on_sets,
    predict_proba,
    predict_with_features,
    score_sets,
)


class FirstPixel(nn.Module):
    """Calls an image class 1 where its first pixel is bright."""

    def forward(self, images):
        value = images[:, 0, 0, 0]
        return torch.stack([0.5 - value, value - 0.5], dim=1)


def test_accuracy_counts_every_image_once():
    images = torch.zeros(AT_ONCE + 7, 1, 2, 2, dtype=torch.uint8)
    images[:10] = 255
    labels = torch.zeros(len(images), dtype=torch.long)
    labels[:4] = 1
    network = FirstPixel()
    assert accuracy(network, TestSet(images, labels)) == (1 - 6 / len(images), None)
    inside = torch.ones(len(images), 2, dtype=torch.bool)
    inside[4:7, 1] = False  # three of the wrong answers are no candidates
    found = accuracy(network, TestSet(images, labels, inside))
    assert found == pytest.approx((1 - 6 / len(images), 1 - 3 / len(images)))
    assert network.training  # left as it was found


def test_sets_are_measured_on_as_a_loop_would():
    probs = torch.tensor([[0.5, 0.2, 0.3], [0.1, 0.6, 0.3], [0.25, 0.25, 0.5]])
    sets = torch.tensor([[1, 0, 1], [1, 0, 0], [0, 1, 1]], dtype=torch.bool)
    mass = [sum(p for p, k in zip(*row, strict=True) if k) for row in zip(probs, sets, strict=True)]
    found = score_sets(probs, sets)
    assert found["probability_on_sets"] == pytest.approx(float(sum(mass)) / 3)
    assert found["share_in_sets"] == pytest.approx(2 / 3)
    bright = torch.tensor([[0.0], [255.0]]).to(torch.uint8).view(2, 1, 1, 1)
    test = TestSet(bright, None, torch.tensor([[True, False], [True, False]]))
    chance = torch.tensor([[0.5, -0.5], [-0.5, 0.5]]).softmax(dim=1)[:, 0].mean().item()
    expected = {"probability_on_sets": pytest.approx(chance), "share_in_sets": 0.5}
    assert measure_on_sets(FirstPixel(), test) == expected


def test_probabilities_are_those_of_the_evaluated_network():
    norm = nn.BatchNorm2d(1)
    norm.running_mean.fill_(0.5)
    network = nn.Sequential(norm, nn.Flatten(), nn.Linear(4, 2))
    images = torch.randint(0, 256, (5, 1, 2, 2), dtype=torch.uint8)
    found = predict_proba(network, images)
    assert torch.allclose(found, network.eval()(images.float() / 255).softmax(dim=1))
    assert norm.running_mean.item() == 0.5  # looking changed nothing


def test_scores_and_features_are_those_of_one_pass(toy_arrays):
    ones = torch.ones(1)
    settings = Model(name="small", width=4, hidden=8, embedding=8)
    network = build(settings, (1, 8, 8), 3, (ones / 2, ones / 4), seed=1)
    images = torch.randint(0, 256, (AT_ONCE + 5, 1, 8, 8), dtype=torch.uint8)
    scores, features = predict_with_features(network, images)
    assert network.training
    assert scores.shape == (len(images), 3)
    assert torch.allclose(network.eval().logits(features), scores, atol=1e-5)
    assert torch.allclose(predict_proba(network, images), scores.softmax(dim=1), atol=1e-5)


def test_a_problem_without_a_test_set(toy_arrays):
    arrays = {k: v for k, v in toy_arrays.items() if "test" not in k}
    assert TestSet.of(make_problem(from_arrays(arrays), Data()), torch.device("cpu"), 0.5) is None
    found = TestSet.of(make_problem(from_arrays(toy_arrays), Data()), torch.device("cpu"), 0.5)
    assert np.array_equal(found.labels.numpy(), toy_arrays["y_test"])
    assert found.candidates is None


def test_test_images_get_sets_as_ambiguous_as_the_training_ones(toy_arrays):
    labels = np.arange(20_000) % 2
    arrays = {**toy_arrays, "x_test": np.zeros((20_000, 8, 8), np.uint8), "y_test": labels}
    problem = make_problem(from_arrays(arrays), Data(ambiguity=0.3))
    sets = TestSet.of(problem, torch.device("cpu"), 0.5).candidates.numpy()
    assert sets[np.arange(20_000), labels].all()
    assert sets[np.arange(20_000), 1 - labels].mean() == pytest.approx(0.3, abs=0.015)
