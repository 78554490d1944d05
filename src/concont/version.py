"""The version, and the commit it was made from, with or without a `.git` beside the source."""

import os
import subprocess
from pathlib import Path

__version__ = "0.1.0"
HERE = Path(__file__).resolve().parent


def commit() -> tuple[str | None, bool | None]:
    """The commit and whether the tree was clean; None where it is not known.

    From $CONCONT_COMMIT, else the file that a build leaves in the package, else git.
    """
    named = os.environ.get("CONCONT_COMMIT")
    if named:
        return named.removesuffix("-dirty"), not named.endswith("-dirty")
    stamp = HERE / "COMMIT"
    if stamp.is_file():
        named = stamp.read_text().strip()
        return named.removesuffix("-dirty"), not named.endswith("-dirty")
    if HERE.parent.name != "src" or not (HERE.parent.parent / ".git").exists():
        return None, None
    head = _git("rev-parse", "HEAD")
    status = _git("status", "--porcelain")
    return head or None, None if status is None else status == ""


def describe() -> str:
    """One line for `--version`."""
    found, clean = commit()
    if found is None:
        return f"concont {__version__} (commit unknown)"
    return f"concont {__version__} (commit {found[:12]}{'' if clean else ', modified'})"


def _git(*words: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(HERE), *words], capture_output=True, text=True, timeout=5, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
