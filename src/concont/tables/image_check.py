"""Every image file read once, on all cores: whether it can be decoded, and a hash of it."""

import hashlib
import multiprocessing
import os
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass

from concont.errors import DataError, printable
from concont.images.files import verify_image

AT_ONCE = 64  # images that a process is given at a time; as few are read without one


@dataclass(frozen=True)
class ImageState:
    """What reading a file has shown."""

    problem: str | None  # None: it can be decoded
    digest: str  # of its content; empty where it could not be read


def read_state(path: str) -> ImageState:
    """Read one file."""
    try:
        with open(path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            if file.tell() == 0:
                return ImageState("the file is empty", "")
    except OSError as error:
        return ImageState(error.strerror or type(error).__name__, "")
    return ImageState(verify_image(path), digest)


def read_states(
    paths: Sequence[str], progress: Callable[[int], None] | None = None
) -> list[ImageState]:
    """Read all files; progress: told how many more have been read."""
    chunks = [paths[k : k + AT_ONCE] for k in range(0, len(paths), AT_ONCE)]
    n_workers = min(len(chunks), _count_cores())
    states: list[ImageState] = []
    if n_workers <= 1:
        for chunk in chunks:
            _extend(states, _read_chunk(chunk), progress)
        return states
    context = multiprocessing.get_context("forkserver" if os.name == "posix" else "spawn")
    with ProcessPoolExecutor(n_workers, context, initializer=_leave_interrupts) as pool:
        try:
            for read in pool.map(_read_chunk, chunks):
                _extend(states, read, progress)
        except BrokenProcessPool:
            path = printable(paths[len(states)])
            raise DataError(f"a process that read {path} or an image after it was killed") from None
        except BaseException:  # an interrupt does not wait for the rest
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return states


def _count_cores() -> int:
    """Those that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _leave_interrupts() -> None:
    """To the process that started this one, which tells of them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _read_chunk(paths: Sequence[str]) -> list[ImageState]:
    return [read_state(path) for path in paths]


def _extend(
    states: list[ImageState], more: list[ImageState], progress: Callable[[int], None] | None
) -> None:
    states.extend(more)
    if progress is not None:
        progress(len(more))
