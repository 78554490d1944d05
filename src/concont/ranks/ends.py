"""How a command ends on every rank: one of them says why, in one line, and all end."""

import json
import logging
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from types import FrameType
from typing import NoReturn

from concont.errors import ConcontError, Interrupted
from concont.ranks import world
from concont.ranks.world import ENDED, PAUSE, WORLD, LostRank
from concont.signals import Stopped

GRACE = 5.0  # seconds in which a rank that lives says that it has ended, too
TOGETHER = 2.0  # seconds in which rank 0 finds out by itself what another rank has found
# In what is raised where another rank's connection is gone, or silent for too long.
OF_CONNECTION = ("gloo", "nccl", "connection", "timed out", "tcpstore", "c10d", "socket")


@dataclass(frozen=True)
class End:
    """What a rank says when it ends before its time."""

    line: str
    code: int
    cause: bool  # it failed by itself, and not since it was stopped or another rank had ended


@contextmanager
def joined() -> Iterator[None]:
    """Take part in what is in here as one of several ranks, of which rank 0 alone speaks.

    A failure of any of them ends all: rank 0 raises it, or if that is gone, the first that is left;
    the others end without a word.
    """
    before = signal.signal(signal.SIGTERM, _stop)  # torchrun's, to the ranks that are left
    try:
        world.connect()
        if not world.leads():
            _be_silent()
        yield
    except BaseException as error:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # until this rank has said why it ends
        _end(error)
    finally:
        with suppress(RuntimeError):  # what is lost already
            world.leave()
    signal.signal(signal.SIGTERM, before)


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    raise Stopped


def _be_silent() -> None:
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115  (for as long as the process lives)
    log = logging.getLogger("concont")
    log.addHandler(logging.NullHandler())
    log.propagate = False


def _end(error: BaseException) -> NoReturn:
    """Tell the others that this rank ends, and raise what it is to end with."""
    own = describe(error)
    if WORLD.store is None:  # the ranks have not met: each has found that by itself
        raise error if world.leads() else SystemExit(own.code)
    with suppress(RuntimeError):  # the store may be gone, with rank 0
        WORLD.store.set(f"end/{WORLD.rank}", json.dumps(asdict(own)))
        WORLD.store.set(ENDED, "")
    if own.cause:  # ends soon, so that the others see that it is gone
        _collect(own, TOGETHER, WORLD.size if world.leads() else 1)
        raise (
            error if world.leads() or not isinstance(error, ConcontError) else SystemExit(own.code)
        )
    ends = _collect(own, GRACE, WORLD.size)
    speaks = min(ends) == WORLD.rank
    found = explain(ends, WORLD.size)
    if found is None:  # all were stopped
        if speaks:
            raise error
        raise SystemExit(own.code)
    if not speaks:
        raise SystemExit(found.code)
    told = ConcontError(found.line)
    told.exit_code = found.code
    raise told from None


def describe(error: BaseException) -> End:
    """What this error is to the other ranks."""
    if isinstance(error, KeyboardInterrupt | Interrupted | LostRank):
        return End(str(error), getattr(error, "exit_code", 1), cause=False)
    if isinstance(error, SystemExit):
        return End("ended", error.code if isinstance(error.code, int) else 1, cause=True)
    if isinstance(error, ConcontError):
        return End(str(error), error.exit_code, cause=True)
    text = str(error).lower()
    lost = isinstance(error, RuntimeError) and any(word in text for word in OF_CONNECTION)
    first = (str(error).splitlines() or [""])[0]
    return End(f"{type(error).__name__}: {first}", 1, cause=not lost)


def explain(ends: dict[int, End], size: int) -> End | None:
    """Why the training ended, from what its ranks say; None: it was stopped from outside."""
    for number, end in sorted(ends.items()):
        if end.cause:
            return End(f"rank {number}: {end.line}", end.code, cause=True)
    silent = [number for number in range(size) if number not in ends]
    if not silent:
        return None
    who = f"rank{'s' * (len(silent) > 1)} {', '.join(map(str, silent))} of {size}"
    why = "ended without a word: killed, stuck, or out of reach"
    return End(f"{who} {why}; --resume goes on from the last checkpoint", 1, cause=True)


def _collect(own: End, seconds: float, wanted: int) -> dict[int, End]:
    """What the first `wanted` ranks have said; waits for them, or for a cause of another rank."""
    ends, began = {WORLD.rank: own}, time.monotonic()
    while time.monotonic() - began < seconds:
        for number in range(wanted):
            with suppress(RuntimeError):
                if number not in ends and WORLD.store.check([f"end/{number}"]):
                    ends[number] = End(**json.loads(WORLD.store.get(f"end/{number}")))
        causes = [number for number, end in ends.items() if end.cause and number != WORLD.rank]
        if causes or set(range(wanted)) <= ends.keys():
            break
        time.sleep(PAUSE)
    return ends
