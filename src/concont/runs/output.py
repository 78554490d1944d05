"""Files that a command is asked to write: refused before the work, not after it."""

import os
from collections.abc import Iterable
from pathlib import Path

from concont.errors import UsageError, printable
from concont.runs.folder import is_name_of_a_part

SUFFIXES = (".csv", ".parquet")  # of tables


def refuse_output(
    path: Path,
    overwrite: bool,
    inputs: Iterable[str | Path | None] = (),
    suffixes: tuple[str, ...] = (),
) -> None:
    """A file that cannot be written, is there already, is one of the inputs or a run's own.

    suffixes: the endings that it may have, if not any.
    """
    name = printable(path)
    if suffixes and path.suffix.lower() not in suffixes:
        raise UsageError(f"{name}: its name must end in {' or '.join(suffixes)}")
    if not path.parent.is_dir():
        raise UsageError(f"{name}: there is no folder {printable(path.parent)}")
    if is_name_of_a_part(path.name) and (path.parent / "config.yaml").is_file():
        raise UsageError(f"{name} is the name of a file of the run itself; choose another")
    if not os.path.lexists(path):  # a link that leads nowhere is there, too
        return
    if not path.is_file():
        raise UsageError(f"{name} is there and is not a file")
    if any(path.samefile(each) for each in inputs if each and Path(each).exists()):
        raise UsageError(f"{name} is what is read; choose another name for what is written")
    if not overwrite:
        raise UsageError(f"{name} is there already; --overwrite replaces it")
