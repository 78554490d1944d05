"""The `concont` command, a module a verb. What is slow to import waits until a verb needs it."""

from concont.cli import demo, evaluate, train
from concont.cli.app import main

__all__ = ["demo", "evaluate", "main", "train"]
