"""Which files are a run's: known by their names, and its settings by what they hold."""

from pathlib import Path

from concont.runs import checksums, lock
from concont.types import SECTIONS

CONTENTS = {
    "config.yaml": "every setting, complete; `--recipe` reads it back",
    "environment.json": "versions, hardware, commit, command",
    "data.json": "class names, normalisation, digest, sizes",
    "candidates.npz": "candidate sets and the rows trained on; `data.candidates` reads it",
    "metrics.jsonl": "one line an evaluation",
    "checkpoint.pt": "everything that `--resume` needs",
    "checkpoint.previous.pt": "the one before it",
    "model.safetensors": "the trained network",
    "verdict.json": "pseudo-labels by class at the end, and how well they were told apart",
    "summary.json": "settings and result; written last",
    "checksums.json": "what the others hold, so that damage is found",
}
# What a start that was killed at once may leave, beside half a file: nothing of a run.
TRACES = (lock.LOCK, lock.HOLDER, checksums.NAME)


def holds_settings(path: Path) -> bool:
    """Whether a run has written this file: it names every section, a line each."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return False
    return {line.partition(":")[0] for line in lines}.issuperset(("recipe", *SECTIONS))


def is_unfinished(path: Path) -> bool:
    """Whether a kill cut the writing of this file short."""
    return path.name.startswith(".") and path.name.endswith(".tmp")


def is_name_of_a_part(name: str) -> bool:
    """Whether a run writes a file of this name."""
    return name in CONTENTS or name.startswith("events.out.tfevents")


def is_trace(path: Path) -> bool:
    """Whether a start that was killed at once may have left this."""
    return is_unfinished(path) or path.name in TRACES


def is_part_of_a_run(path: Path) -> bool:
    """Whether a run has left this file, by its name."""
    return path.is_file() and (is_name_of_a_part(path.name) or is_trace(path))
