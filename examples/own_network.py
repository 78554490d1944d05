"""A network of your own: any module that turns images into features; heads are put on it."""

import tempfile
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn

import concont


class Patches(nn.Module):
    """Sixteen patches of 2 x 2 pixels, mixed twice; gives features (B, 64)."""

    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(1, 32, kernel_size=2, stride=2)  # (B, 32, 4, 4)
        self.mix = nn.Sequential(nn.Flatten(), nn.Linear(512, 128), nn.ReLU(), nn.Linear(128, 64))

    def forward(self, images):
        """Images (B, 1, 8, 8), normalised by the training images' mean and deviation."""
        return self.mix(torch.relu(self.patches(images)))


config = {
    "recipe": "digits",  # its data: 144 digits with candidate sets, 1,293 without
    "train": {"epochs": 12, "evaluate_every": 12, "device": "cpu"},
}
digits = load_digits()
images = (digits.images * 15.9375).astype(np.uint8)  # (1797, 8, 8)

with tempfile.TemporaryDirectory() as folder:
    run = concont.train(config, model=Patches(), out=Path(folder) / "run")
    again = concont.load(run.path, model=Patches())  # the weights come from the folder
    probabilities = again.predict_proba(images)  # (1797, 10)

accuracy, sure = run.summary["accuracy_last"], probabilities.max(axis=1) > 0.9
right = (probabilities.argmax(axis=1) == digits.target)[sure].mean()
print(f"test accuracy: {100 * accuracy:.1f} %")
print(f"right where it gives more than nine tenths: {100 * right:.1f} %")
