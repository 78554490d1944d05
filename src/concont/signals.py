"""Ctrl-C, SIGTERM and a closed terminal as a flag that the training loop reads between steps."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


class Stopped(KeyboardInterrupt):
    """A stop that ends at once.

    A plain KeyboardInterrupt that leaves text run by `exec`, as imports do, has Python end by
    SIGINT later on, even where it was caught.
    """


class _DelayedStop:
    """Whether a stop has to be delayed, and whether one was."""

    delaying = requested = False


@contextmanager
def unbroken() -> Iterator[None]:
    """What is in here is done to its end before a stop is raised."""
    _DelayedStop.delaying = True
    try:
        yield
    finally:
        requested = _DelayedStop.requested
        _DelayedStop.delaying = _DelayedStop.requested = False
        if requested:
            raise Stopped


@contextmanager
def stop_requests(at_once: bool = False) -> Iterator[Callable[[], bool]]:
    """A function that tells whether a stop was requested; a second request ends at once.

    at_once: the first one does too, as `Stopped`; for work that has nothing to save.
    """
    requested = False
    watched = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # ignored under nohup: leave it so
        watched.append(signal.SIGHUP)
    handlers_before = {number: signal.getsignal(number) for number in watched}

    def restore_handlers() -> None:
        for number, handler in handlers_before.items():
            signal.signal(number, handler)

    def handle_first_request(number: int, frame: FrameType | None) -> None:
        nonlocal requested
        requested = True
        restore_handlers()  # so that a second request ends the process
        if at_once and _DelayedStop.delaying:
            _DelayedStop.requested = True
        elif at_once:
            raise Stopped

    for number in watched:
        signal.signal(number, handle_first_request)
    try:
        yield lambda: requested
    finally:
        restore_handlers()
