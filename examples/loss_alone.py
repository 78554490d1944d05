"""A loss alone: learn from candidate sets in a plain PyTorch loop.

Each training digit has its true label and each wrong one with a chance of 0.3. The partial loss
asks that the probability falls on the set, and leaves it to the network where in the set.
"""

import torch
from sklearn.datasets import load_digits
from torch import nn

from concont import partial_cross_entropy

torch.manual_seed(1)
digits = load_digits()
images = torch.tensor(digits.data, dtype=torch.float32) / 16  # (1797, 64)
labels = torch.tensor(digits.target)
train, test = slice(0, 1437), slice(1437, None)

truth = nn.functional.one_hot(labels[train], 10).bool()
candidates = truth | (torch.rand(truth.shape) < 0.3)  # (1437, 10)

network = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)

for _ in range(30):  # epochs
    for rows in torch.randperm(1437).split(64):
        loss = partial_cross_entropy(network(images[train][rows]), candidates[rows]).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

with torch.no_grad():
    accuracy = (network(images[test]).argmax(dim=1) == labels[test]).float().mean().item()

print(f"labels in a candidate set: {candidates.sum(dim=1).float().mean():.2f} on average")
print(f"test accuracy: {100 * accuracy:.1f} %")
