"""The controller on another method: FixMatch, guided by p-scores and thresholds of each class.

FixMatch learns a disturbed image's pseudo-label where the network is sure of it. Here it is sure
where the p-score, which knows the candidate set, reaches the threshold of that label's class.
"""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.functional import cross_entropy, one_hot

from concont import AdaptiveThresholds, partial_confidence, partial_cross_entropy

torch.manual_seed(1)
digits = load_digits()
order = torch.randperm(1797)
images = torch.tensor(digits.images, dtype=torch.float32)[order, None] / 16  # (1797, 1, 8, 8)
labels = torch.tensor(digits.target)[order]

candidates = torch.ones(1437, 10, dtype=torch.bool)  # unlabelled, but for the first 150:
candidates[:150] = one_hot(labels[:150], 10).bool() | (torch.rand(150, 10) < 0.1)


def shift(batch):
    """A weak view: moved by up to a pixel."""
    down, across = torch.randint(-1, 2, (2,)).tolist()
    return batch.roll((down, across), dims=(2, 3))


def disturb(batch):
    """A strong view: moved, noisy, and with a hole."""
    moved = shift(batch) + 0.15 * torch.randn_like(batch)
    row, column = torch.randint(0, 6, (2,)).tolist()
    moved[:, :, row : row + 3, column : column + 3] = 0
    return moved


network = nn.Sequential(
    *(nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()),
    *(nn.Linear(512, 64), nn.ReLU(), nn.Linear(64, 10)),
)
optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9)
thresholds = AdaptiveThresholds(10, initial=1.0, lower=0.8, upper=1.05, rate=0.1)

for _ in range(20):  # epochs
    for unlabelled in (150 + torch.randperm(1287)).split(128):
        rows = torch.cat([torch.randint(150, (64,)), unlabelled])  # 64 with a set come first
        sets, logits = candidates[rows], network(shift(images[rows]))
        score, pseudo = partial_confidence(logits.detach().softmax(dim=1), sets)
        confident = score >= thresholds.values[pseudo]

        supervised = partial_cross_entropy(logits[:64], sets[:64]).mean()
        strong = cross_entropy(network(disturb(images[rows])), pseudo, reduction="none")
        loss = supervised + (strong * confident).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        thresholds.update(pseudo, confident)

with torch.no_grad():
    accuracy = (network(images[1437:]).argmax(dim=1) == labels[1437:]).float().mean().item()
    score, pseudo = partial_confidence(network(images[:1437]).softmax(dim=1), candidates)
right = (pseudo == labels[:1437]).float()
confident = score >= thresholds.values[pseudo]
precision, other = right[confident].mean().item(), right[~confident].mean().item()

print(f"right pseudo-labels: {100 * precision:.1f} % if confident, else {100 * other:.1f} %")
print(f"test accuracy: {100 * accuracy:.1f} %")
