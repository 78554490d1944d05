"""`concont data cache`: what is kept to save time, and how to be rid of it."""

import shutil
from pathlib import Path
from typing import Annotated

import typer

from concont.cli.app import tell
from concont.cli.data import data_app

# Folders of the cache that hold what can be made again; downloaded data lies beside them.
KEPT = {"images": "decoded images", "gist": "GIST features"}


@data_app.command()
def cache(
    clear: Annotated[bool, typer.Option("--clear", help="Remove all of it.")] = False,
) -> None:
    """Show how much is kept of decoded images and features; it is made again where it is needed.

    It lies in `$CONCONT_CACHE`, else in the user's cache folder.
    """
    from concont.cache import cache_folder

    place = cache_folder()
    for name, what in KEPT.items():
        folder = place / name
        size = _measure(folder)
        if clear and folder.is_dir():
            shutil.rmtree(folder)
        done = "removed" if clear else "kept"
        tell(f"{what}: {size / 1e9:.3f} GB {done} in {folder}")


def _measure(folder: Path) -> int:
    """Bytes of the files in a folder and below it."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.lstat().st_size
        except FileNotFoundError:  # another process has just renamed it
            continue
    return total
