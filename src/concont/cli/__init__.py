"""The `concont` command, a module a verb. What is slow to import waits until a verb needs it."""

from concont.cli import (
    add_votes,
    bench,
    cache,
    data,
    demo,
    evaluate,
    export,
    predict,
    report,
    reproduce,
    resolve,
    results,
    serve,
    sweep,
    tables,
    train,
    watch,
)
from concont.cli.app import main

__all__ = [
    "add_votes",
    "bench",
    "cache",
    "data",
    "demo",
    "evaluate",
    "export",
    "main",
    "predict",
    "report",
    "reproduce",
    "resolve",
    "results",
    "serve",
    "sweep",
    "tables",
    "train",
    "watch",
]
