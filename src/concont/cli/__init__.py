"""The `concont` command, a module a verb. What is slow to import waits until a verb needs it."""

from concont.cli import (
    bench,
    data,
    demo,
    evaluate,
    predict,
    reproduce,
    results,
    sweep,
    tables,
    train,
)
from concont.cli.app import main

__all__ = [
    "bench",
    "data",
    "demo",
    "evaluate",
    "main",
    "predict",
    "reproduce",
    "results",
    "sweep",
    "tables",
    "train",
]
