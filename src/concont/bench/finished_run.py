"""What a finished run spent its time on, and when it passed an accuracy."""

from typing import Any

from concont.errors import UsageError
from concont.runs.folder import RunFolder


def describe_run_time(folder: RunFolder, passing: float) -> dict[str, Any]:
    """Figures of a run's `summary.json` and `metrics.jsonl`."""
    if not folder.finished:
        raise UsageError(f"{folder.path} holds no finished run")
    summary = folder.read_summary()
    by, seconds = summary.seconds_by or {}, summary.seconds
    if "other" not in by:
        raise UsageError(f"{folder.path} does not say what its time went to")
    when = [row["seconds"] for row in folder.metrics() if (row["accuracy"] or 0) >= passing]
    return {
        "accuracy_last": summary.accuracy_last,
        "epochs": summary.epochs,
        "seconds": seconds,
        "seconds_by": by,
        "evaluation_and_other": (by["evaluation"] + by["other"]) / seconds,
        "passing": passing,
        "passed_at_s": when[0] if when else None,
    }
