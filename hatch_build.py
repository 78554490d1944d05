"""Stamps the commit into the wheel, where there is no `.git` to ask later."""

import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CommitStamp(BuildHookInterface):
    """Adds `concont/COMMIT` to a wheel that is built from a git checkout."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the commit into the wheel; an editable install asks git each time."""
        if version == "editable":
            return
        try:
            head, status = self._git("rev-parse", "HEAD"), self._git("status", "--porcelain")
        except (OSError, subprocess.CalledProcessError):
            return
        found = f"{head}-dirty" if status else head  # untracked files go into the wheel too
        stamp = Path(self.directory) / "COMMIT"
        stamp.parent.mkdir(parents=True, exist_ok=True)
        stamp.write_text(found + "\n")
        build_data["force_include"][str(stamp)] = "concont/COMMIT"

    def _git(self, *words: str) -> str:
        done = subprocess.run(
            ["git", *words], cwd=self.root, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()
