"""`concont data cache`: what is kept to save time, and how to be rid of it."""

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from concont.cli.app import tell
from concont.cli.data import data_app

# Folders of the cache that hold what can be made again; downloaded data lies beside them.
KEPT = {"images": "decoded images", "gist": "GIST features"}
# The names of files in these: the folder that $CONCONT_CACHE names may have `images` of its own.
OWN = {
    "images": r"\d+x\d+x\d+-[a-z]+-\d+-[0-9a-f]{32}(\.part)?\.npy|\.\d+-[0-9a-f]{8}\.tmp",
    "images/index": r"[0-9a-f]{32}\.json",
    "gist": r"[0-9a-f]{32}-\d+-\d+\.npy",
}
UNFINISHED = r"|\.({})\.\d+-[0-9a-f]{{8}}\.tmp"  # what a killed process left of such a file


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
        size = 0
        for path in _list_own(place, name):
            with suppress(FileNotFoundError):  # another process has just renamed it
                size += path.lstat().st_size
                if clear:
                    path.unlink()
        if clear:
            _remove_if_empty(place / name / "index")
            _remove_if_empty(place / name)
        done = "removed" if clear else "kept"
        tell(f"{what}: {size / 1e9:.3f} GB {done} in {place / name}")


def _list_own(place: Path, name: str) -> Iterator[Path]:
    """The files in a folder of the cache, and below it, that have a name of the cache's."""
    for folder, own in OWN.items():
        if folder.split("/")[0] == name and (place / folder).is_dir():
            known = re.compile(own + UNFINISHED.format(own))
            paths = list((place / folder).iterdir())
            yield from (path for path in paths if known.fullmatch(path.name))


def _remove_if_empty(folder: Path) -> None:
    with suppress(OSError):  # it holds what is not the cache's, or is not there
        folder.rmdir()
