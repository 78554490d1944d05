"""Where what was made once is kept for the next time."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """`$CONCONT_CACHE`, else the package's folder in the user's cache."""
    named = os.environ.get("CONCONT_CACHE")
    if named:
        return Path(named)
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "concont"
