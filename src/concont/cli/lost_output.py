"""What is printed while a run trains may be lost, as in `train | head -1`; the run may not."""

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

log = logging.getLogger("concont")


class MayEnd:
    """A stream of text that, once it cannot be written to, takes everything and keeps nothing."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write it, if that is still possible."""
        try:
            self.stream.write(text)
        except OSError as error:
            self._give_up(error)
        return len(text)

    def flush(self) -> None:
        """The same of what was kept to be written at once."""
        try:
            self.stream.flush()
        except OSError as error:
            self._give_up(error)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def _give_up(self, error: OSError) -> None:
        """Send the rest nowhere, what is in the stream's buffer too."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.stream.fileno())
        os.close(nowhere)
        log.warning("nothing more can be printed (%s); training goes on", error.strerror)


@contextmanager
def output_may_end() -> Iterator[None]:
    """Standard output that is closed, or full, ends no command in here."""
    before = sys.stdout
    if before is not None:  # closed from the start
        sys.stdout = MayEnd(before)
    try:
        yield
    finally:
        if before is not None:
            sys.stdout.flush()
            sys.stdout = before


def fill_closed_descriptors() -> None:
    """Let no file of a run take the place of a closed stream, whose output would go into it."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
