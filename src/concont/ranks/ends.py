"""How a command ends on every rank: one of them says why, in one line, and all end."""

import atexit
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

from concont.errors import ConcontError, Interrupted, UsageError
from concont.ranks import world
from concont.ranks.store import is_searching
from concont.ranks.world import ENDED, PAUSE, WORLD, LostRank
from concont.signals import Stopped

GRACE = 5.0  # seconds in which a rank that lives says that it has ended, too
TOGETHER = 2.0  # seconds in which rank 0 finds out by itself what another rank has found
# In what is raised where another rank's connection is gone, or silent for too long.
OF_CONNECTION = ("gloo", "nccl", "connection", "timed out", "tcpstore", "c10d", "socket")
WHY = "one was slower than train.rank_timeout, or they do not do the same"


@dataclass(frozen=True)
class End:
    """What a rank says when it ends before its time."""

    line: str
    code: int
    cause: bool  # it failed by itself, and not since it was stopped or another rank had ended
    lost: bool = False  # it waited for another rank in vain


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
        with suppress(RuntimeError):  # what is lost already
            world.close()
    except BaseException as error:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # until this rank has said why it ends
        told = _end(error)
        if WORLD.on_gpu or is_searching():
            atexit.register(_exit_at_once, get_exit_code(told))
        if told is error:
            raise
        raise told from None
    finally:
        world.leave()
    signal.signal(signal.SIGTERM, before)


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    raise Stopped


def _be_silent() -> None:
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115  (for as long as the process lives)
    log = logging.getLogger("concont")
    log.addHandler(logging.NullHandler())
    log.propagate = False


def _end(error: BaseException) -> BaseException:
    """Tell the others that this rank ends; what it is to end with."""
    own = describe(error)
    if WORLD.store is None:  # the ranks have not met: why, another may not know
        speaks = world.leads() or isinstance(error, UsageError)
        return error if speaks else SystemExit(own.code)
    with suppress(RuntimeError):  # the store may be gone, with rank 0
        WORLD.store.set(f"end/{WORLD.rank}", json.dumps(asdict(own)))
        WORLD.store.set(ENDED, "")
    if own.cause:  # ends soon, so that the others see that it is gone
        _collect(own, TOGETHER, WORLD.size if world.leads() else 1)
        unknown = not isinstance(error, ConcontError)  # so it leaves a traceback
        return error if world.leads() or unknown else SystemExit(own.code)
    ends = _collect(own, GRACE, WORLD.size)
    found = explain(ends, WORLD.size, WORLD.formed)
    if min(ends) != WORLD.rank:
        return SystemExit(found.code)
    if found == own and not isinstance(error, RuntimeError):
        return error
    told = ConcontError(found.line)
    told.exit_code = found.code
    return told


def get_exit_code(error: BaseException) -> int:
    """What the process will end with."""
    code = error.code if isinstance(error, SystemExit) else getattr(error, "exit_code", 1)
    return code if isinstance(code, int) else 1


def _exit_at_once(code: int) -> None:
    """Without waiting for what PyTorch does in C++: for ranks that are gone, or never came."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def describe(error: BaseException) -> End:
    """What this error is to the other ranks."""
    if isinstance(error, KeyboardInterrupt | Interrupted | LostRank):
        line = str(error) or "stopped"
        return End(line, get_exit_code(error), False, lost=isinstance(error, LostRank))
    if isinstance(error, SystemExit):
        return End("ended", get_exit_code(error), cause=True)
    if isinstance(error, ConcontError):
        return End(str(error), error.exit_code, cause=True)
    text = str(error).lower()
    lost = isinstance(error, RuntimeError) and any(word in text for word in OF_CONNECTION)
    first = (str(error).splitlines() or [""])[0]
    return End(f"{type(error).__name__}: {first}", 1, not lost, lost)


def explain(ends: dict[int, End], size: int, begun: bool) -> End:
    """Why the training ended, from what its ranks say; begun: there was one."""
    for number, end in sorted(ends.items()):
        if end.cause:
            return End(f"rank {number}: {end.line}", end.code, cause=True)
    silent = [number for number in range(size) if number not in ends]
    if silent:
        who = f"rank{'s' * (len(silent) > 1)} {', '.join(map(str, silent))} of {size}"
        why = "ended without a word: killed, stuck, or out of reach"
        cure = "; --resume goes on from the last checkpoint" if begun else ""
        return End(f"{who} {why}{cure}", 1, cause=True)
    stopped = [end for end in ends.values() if not end.lost]
    if stopped:
        return stopped[0]
    line = f"all {size} ranks live, and waited for each other in vain: {WHY}"
    return End(f"{line} ({ends[min(ends)].line})", 1, cause=True)


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
