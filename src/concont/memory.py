"""How much this process can hold in memory, so that what is too much is refused, not tried."""

import os
import resource
from contextlib import suppress
from pathlib import Path

from concont.errors import ConcontError, DataError

CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")  # of a container; `max`: none
# In errors of the CUDA driver, of its libraries, and of PyTorch's allocator on a CPU.
FULL = ("out of memory", "ALLOC_FAILED", "can't allocate memory")


def count_memory() -> int:
    """The bytes of main memory that this process may use at most."""
    limits = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft != resource.RLIM_INFINITY:
        limits.append(soft)
    with suppress(OSError, ValueError):  # no container, or one without a limit
        limits.append(int(CGROUP_LIMIT.read_text()))
    return min(limits)


def refuse_beyond_memory(
    needed: int, what: str, cure: str = "", error: type[ConcontError] = DataError
) -> None:
    """An error where so many bytes cannot be held; what: takes them, with a verb."""
    there = count_memory()
    if needed > there:
        end = f"; {cure}" if cure else ""
        raise error(f"{what} {show_bytes(needed)} of memory; there are {show_bytes(there)}{end}")


def show_bytes(count: int) -> str:
    """`1.5 GB`; from a thousand terabytes on as a power of ten, since nobody reads more digits."""
    if count >= 10**15:
        return f"{count / 1e12:.0e} TB"
    unit, name = next(
        ((size, name) for size, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB")) if count >= size),
        (1e3, "kB"),
    )
    return f"{count / unit:.3g} {name}"


def tells_of_full_memory(error: BaseException) -> bool:
    """Whether an error says that memory ran out, in PyTorch's many words or Python's."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    text = str(error)
    return isinstance(error, RuntimeError) and any(words in text for words in FULL)
