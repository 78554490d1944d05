"""Ctrl-C, SIGTERM and a closed terminal as a question that the training loop asks between steps."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


class Stopped(KeyboardInterrupt):
    """A stop that ends at once.

    A plain KeyboardInterrupt that leaves text run by `exec`, as imports do, has Python end by
    SIGINT later on, even where it was caught.
    """


class _Patience:
    """Whether a stop has to wait, and whether one does."""

    needed = waiting = False


@contextmanager
def unbroken() -> Iterator[None]:
    """What is in here is done to its end before a stop is raised."""
    _Patience.needed = True
    try:
        yield
    finally:
        waiting, _Patience.needed, _Patience.waiting = _Patience.waiting, False, False
        if waiting:
            raise Stopped


@contextmanager
def stop_requests(at_once: bool = False) -> Iterator[Callable[[], bool]]:
    """A function that tells whether a stop was asked for; a second request ends at once.

    at_once: the first one does too, as `Stopped`; for work that has nothing to save.
    """
    asked = False
    watched = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as nohup has it
        watched.append(signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in watched}

    def remember(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        asked = True
        for each, handler in before.items():
            signal.signal(each, handler)
        if at_once and _Patience.needed:
            _Patience.waiting = True
        elif at_once:
            raise Stopped

    for number in watched:
        signal.signal(number, remember)
    try:
        yield lambda: asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
