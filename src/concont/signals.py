"""Ctrl-C and SIGTERM as a question that the training loop asks between steps."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def stop_requests() -> Iterator[Callable[[], bool]]:
    """A function that tells whether a stop was asked for; a second request ends at once."""
    asked = False
    watched = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.getsignal(number) for number in watched}

    def remember(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        asked = True
        for each, handler in before.items():
            signal.signal(each, handler)

    for number in watched:
        signal.signal(number, remember)
    try:
        yield lambda: asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
