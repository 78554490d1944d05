"""Checkpoints: everything that changes, written whole, read without running code."""

import logging
from pathlib import Path
from typing import Any

import torch

from concont.errors import DataError, printable
from concont.runs.contents import START_AFRESH
from concont.runs.folder import RunFolder

log = logging.getLogger("concont")
CURRENT, PREVIOUS = "checkpoint.pt", "checkpoint.previous.pt"


def save(folder: RunFolder, content: dict[str, Any]) -> None:
    """Write a checkpoint, keeping the one before it."""

    def write(temporary: Path) -> None:
        with open(temporary, "wb") as file:
            try:
                torch.save(content, file)
            except RuntimeError as error:  # torch's own words do not say that the disk is full
                why = error.__context__
                raise why if isinstance(why, OSError) else error from None

    folder.write(CURRENT, write, previous=PREVIOUS)


def load(folder: RunFolder, device: torch.device) -> dict[str, Any] | None:
    """The newest checkpoint that is whole, or None without one."""
    found = [name for name in (CURRENT, PREVIOUS) if (folder / name).exists()]
    problems = list[str]()
    for name in found:
        try:
            content = _read(folder, name, device)
        except DataError as error:
            problems.append(f"{name} {error}")
            continue
        for problem in problems:
            log.warning("%s: %s; going on from %s", printable(folder.path), problem, name)
        return content
    if found:
        told = " and ".join(problems)
        raise DataError(f"{printable(folder.path)}: {told}; {START_AFRESH}")
    return None


def _read(folder: RunFolder, name: str, device: torch.device) -> dict[str, Any]:
    if not folder.checksums.fits(name):
        raise DataError("does not fit its checksum")
    try:
        # What torch says of a file that it refuses is how to let the file run code.
        content = torch.load(folder / name, map_location=device, weights_only=True)
    except torch.OutOfMemoryError:
        raise
    except Exception as error:  # a damaged file fails in many ways
        raise DataError(f"cannot be read ({type(error).__name__})") from None
    if not isinstance(content, dict) or type(content.get("step")) is not int:
        raise DataError("holds no checkpoint")
    return content
