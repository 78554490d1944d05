"""Files that a command is asked to write: refused before the work, not after it."""

from collections.abc import Iterable
from pathlib import Path

from concont.errors import UsageError, printable


def refuse_output(
    path: Path,
    overwrite: bool,
    inputs: Iterable[str | Path | None] = (),
    suffixes: tuple[str, ...] = (),
) -> None:
    """A file that cannot be written, is there already, or is one of the inputs.

    suffixes: the endings that it may have, if not any.
    """
    name = printable(path)
    if suffixes and path.suffix.lower() not in suffixes:
        raise UsageError(f"{name}: its name must end in {' or '.join(suffixes)}")
    if not path.parent.is_dir():
        raise UsageError(f"{name}: there is no folder {printable(path.parent)}")
    if not path.exists():
        return
    if not path.is_file():
        raise UsageError(f"{name} is there and is not a file")
    if any(path.samefile(each) for each in inputs if each and Path(each).exists()):
        raise UsageError(f"{name} is what is read; choose another name for what is written")
    if not overwrite:
        raise UsageError(f"{name} is there already; --overwrite replaces it")
