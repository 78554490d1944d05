"""Checkpoints: everything that changes, written whole, read without running code."""

import logging
from pathlib import Path
from typing import Any

import torch

from concont.errors import ConcontError
from concont.runs.folder import RunFolder, write_whole

log = logging.getLogger("concont")
CURRENT, PREVIOUS = "checkpoint.pt", "checkpoint.previous.pt"


def save(folder: RunFolder, content: dict[str, Any]) -> None:
    """Write a checkpoint, keeping the one before it."""

    def write(temporary: Path) -> None:
        torch.save(content, temporary)

    write_whole(folder / CURRENT, write, keep=folder / PREVIOUS)


def load(folder: RunFolder, device: torch.device) -> dict[str, Any] | None:
    """The newest readable checkpoint, or None without one."""
    found = [folder / name for name in (CURRENT, PREVIOUS) if (folder / name).exists()]
    problems = []
    for path in found:
        try:
            content: dict[str, Any] = torch.load(path, map_location=device, weights_only=True)
        except Exception as error:  # a damaged file fails in many ways
            problems.append(f"{path}: {error}")
        else:
            for problem in problems:
                log.warning("going on from %s; not readable: %s", path.name, problem)
            return content
    if found:
        raise ConcontError("no readable checkpoint:", *problems)
    return None
