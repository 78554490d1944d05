"""The `concont` command, a module a verb. What is slow to import waits until a verb needs it."""

from concont.cli import (
    bench,
    cache,
    data,
    demo,
    evaluate,
    predict,
    report,
    reproduce,
    resolve,
    results,
    sweep,
    tables,
    train,
    watch,
)
from concont.cli.app import main

__all__ = [
    "bench",
    "cache",
    "data",
    "demo",
    "evaluate",
    "main",
    "predict",
    "report",
    "reproduce",
    "resolve",
    "results",
    "sweep",
    "tables",
    "train",
    "watch",
]
