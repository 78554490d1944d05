"""A run folder is written by one process at a time: a lock that ends with its process."""

import errno
import logging
import os
import platform
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from concont.errors import UsageError, printable

if TYPE_CHECKING:
    from filelock import FileLock

log = logging.getLogger("concont")
LOCK, HOLDER = ".lock", ".lock.holder"
LONGEST = 200  # characters of the holder's words that are told
NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS)  # what a network's file system may say


class FolderLock:
    """The lock on a folder, held by this object or not; a crash lets go of it."""

    def __init__(self) -> None:
        self._lock: FileLock | None = None

    @property
    def is_held(self) -> bool:
        """Whether this object has it."""
        return self._lock is not None

    def acquire(self, folder: Path) -> None:
        """Hold the lock of a folder that is there; a UsageError names the process that has it."""
        if self.is_held:
            return
        from filelock import FileLock, Timeout  # not needed to read a run

        lock = FileLock(folder / LOCK, thread_local=False)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            raise UsageError(
                f"{printable(folder)} is in use by {_read_holder(folder)}; "
                "wait for its end, or stop it"
            ) from None
        except OSError as error:
            if error.errno not in NO_LOCKS:
                raise
            log.warning("no locks on this file system: start no second run in %s", folder)
        self._lock = lock
        now = time.strftime("%Y-%m-%d %H:%M:%S")
        words = f"process {os.getpid()} on {platform.node()} since {now}"
        with suppress(OSError):  # a full disk: it is held all the same
            (folder / HOLDER).write_text(words, encoding="utf-8")

    def release(self) -> None:
        """Let others have it; the files stay, since to remove them could let in two at once."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None


def _read_holder(folder: Path) -> str:
    try:
        words = (folder / HOLDER).read_text("utf-8", "replace")[:LONGEST]
    except OSError:
        words = ""
    return printable(words).strip() or "another process"
