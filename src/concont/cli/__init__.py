"""The `concont` command, a module a verb. What is slow to import waits until a verb needs it."""

from concont.cli import data, demo, evaluate, predict, train
from concont.cli.app import main

__all__ = ["data", "demo", "evaluate", "main", "predict", "train"]
