"""Who takes part in a training, and what they agree on.

Nothing here imports PyTorch before there are several ranks: commands ask who they are.
"""

import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from concont.errors import ConcontError, UsageError, printable
from concont.ranks.store import open_store

if TYPE_CHECKING:
    import torch

START = 60.0  # seconds that ranks wait for each other's processes
LONGER = 60.0  # seconds that a GPU waits longer for another than its process does, which can say so
PAUSE = 0.05  # seconds between two looks at the store
PORTS = 2**16
RESTARTS = "TORCHELASTIC_RESTART_COUNT"
ENDED = "ended"  # the key that whoever ends before its time sets


@dataclass
class World:
    """The ranks of this training, as this one sees them."""

    size: int = 1
    rank: int = 0
    local: int = 0  # the place among the ranks of this machine, so the number of its GPU
    timeout: float = START  # seconds that ranks wait for one another
    store: Any = None  # torch.distributed.Store: small texts that every rank reads; None: alone
    formed: bool = False  # tensors can be exchanged
    on_gpu: bool = False  # and lie there
    talk: Any = None  # the group for numbers in main memory; None: the one for all
    meetings: int = 0  # so far: each has keys of its own in the store


WORLD = World()


class LostRank(ConcontError):
    """Another rank has ended, so this one cannot go on."""


def size() -> int:
    """How many ranks there are."""
    return WORLD.size


def rank() -> int:
    """Which of them this process is."""
    return WORLD.rank


def leads() -> bool:
    """Whether this is rank 0, which alone writes and speaks."""
    return WORLD.rank == 0


def is_started_as_rank() -> bool:
    """Whether a launcher such as torchrun started this process as one of several."""
    try:
        return int(os.environ.get("WORLD_SIZE", "1")) > 1 and "RANK" in os.environ
    except ValueError:
        return False


def is_restarted() -> bool:
    """Whether torchrun started this process anew, after a rank had ended."""
    return os.environ.get(RESTARTS, "0") not in ("", "0")


def connect() -> None:
    """Meet the other ranks, as the environment of torchrun says; tensors come later: `form`."""
    wanted = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
    missing = [name for name in wanted if name not in os.environ]
    if missing:
        raise UsageError(f"{', '.join(missing)} not set: start ranks by torchrun")
    rank, size = _read_number("RANK"), _read_number("WORLD_SIZE")
    if rank >= size:
        raise UsageError(f"RANK is {rank}; of WORLD_SIZE {size} it must be 0 to {size - 1}")
    if _read_number("MASTER_PORT") >= PORTS:
        raise UsageError(f"MASTER_PORT is {os.environ['MASTER_PORT']}; it must be below {PORTS}")
    WORLD.rank, WORLD.size, WORLD.local = rank, size, _read_number("LOCAL_RANK", "0")
    store = open_store(rank, START)
    from torch._C._distributed_c10d import PrefixStore

    # Torchrun's store may outlive the processes that it starts anew.
    WORLD.store = PrefixStore(f"start {os.environ.get(RESTARTS, '0')}", store)


def _read_number(name: str, usual: str = "") -> int:
    """A count in the environment; a launcher writes it right, a person may not."""
    text = os.environ.get(name, usual)
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise UsageError(f"{name} is '{printable(text)}', no number: start ranks by torchrun")
    return int(text)


def form(device: "torch.device", timeout: float) -> None:
    """From here on tensors can be exchanged; timeout: seconds that one rank waits for another."""
    if WORLD.size == 1 or WORLD.formed:
        return
    import torch
    import torch.distributed as dist
    from torch._C._distributed_c10d import PrefixStore

    WORLD.timeout = timeout
    if device.type == "cuda":
        there = torch.cuda.device_count()
        if WORLD.local >= there:
            raise UsageError(f"a rank needs a GPU of its own: --nproc-per-node {there} at most")
        torch.cuda.set_device(WORLD.local)
    meet("formed")  # a rank that has ended by now would be waited for in vain
    WORLD.on_gpu = device.type == "cuda"
    dist.init_process_group(
        "cpu:gloo,cuda:nccl" if WORLD.on_gpu else "gloo",
        store=PrefixStore("tensors", WORLD.store),
        rank=WORLD.rank,
        world_size=WORLD.size,
        timeout=timedelta(seconds=timeout + LONGER * WORLD.on_gpu),
    )
    if WORLD.on_gpu:
        WORLD.talk = dist.new_group(backend="gloo", timeout=timedelta(seconds=timeout))
    WORLD.formed = True


def close() -> None:
    """Take down what all ranks have formed together, which none of them has lost."""
    if WORLD.formed:
        import torch.distributed as dist

        dist.destroy_process_group()
        WORLD.formed = False


def leave() -> None:
    """Be alone again."""
    WORLD.__dict__.update(World().__dict__)


def meet(name: str) -> None:
    """Wait until every rank is here; a `LostRank` if one has ended, or does not come."""
    if WORLD.size == 1:
        return
    key = _name_keys(name)
    WORLD.store.set(f"{key}/{WORLD.rank}", "")
    wait_for([f"{key}/{rank}" for rank in range(WORLD.size)], WORLD.timeout)


def _name_keys(name: str) -> str:
    """A name for what all ranks do together now; they do it all in the same order."""
    WORLD.meetings += 1
    return f"{name}/{WORLD.meetings}"


def wait_for(keys: list[str], seconds: float | None) -> None:
    """Wait for keys of the store, a little at a time, so that signals are heard; None: for ever."""
    began = time.monotonic()
    while not WORLD.store.check(keys):
        if WORLD.store.check([ENDED]):
            raise LostRank("another rank has ended")
        if seconds is not None and time.monotonic() - began > seconds:
            raise LostRank(f"another rank did not come within {seconds:g} s")
        time.sleep(PAUSE)


@contextmanager
def lead_first(name: str) -> Iterator[None]:
    """What is in here is done by rank 0 first, then by the others: they find what it has made."""
    key = _name_keys(name)
    if WORLD.rank:
        wait_for([key], None)
    yield
    if WORLD.size > 1 and leads():
        WORLD.store.set(key, "")


def agree(facts: Mapping[str, object]) -> None:
    """Refuse ranks for which one of these facts, by their names, is not what it is for rank 0."""
    if WORLD.size == 1:
        return
    key = _name_keys("facts")
    WORLD.store.set(f"{key}/{WORLD.rank}", json.dumps({k: str(v) for k, v in facts.items()}))
    meet("agreed")
    told = [json.loads(WORLD.store.get(f"{key}/{rank}")) for rank in range(WORLD.size)]
    for number, found in enumerate(told):
        other = [name for name in told[0] if found.get(name) != told[0][name]]
        if other:
            values = "; ".join(f"{n}: {found.get(n)}, not {told[0][n]}" for n in other)
            raise UsageError(f"rank {number} is not like rank 0 ({values})")


def any_rank(*flags: bool) -> tuple[bool, ...]:
    """Each flag, true if it is true on any rank; by way of main memory, so no GPU is waited for."""
    if WORLD.size == 1:
        return flags
    return tuple(value > 0 for value in _largest(map(float, flags)))


def wait_for_all() -> None:
    """Every rank has come here, so that its GPU will do what the others' GPUs wait for.

    To be asked for before a GPU is waited for: a process that waits there cannot tell who is lost.
    """
    if WORLD.on_gpu:
        _largest([0.0])


def slowest(seconds: float) -> float:
    """The longest of a time that every rank has measured."""
    return seconds if WORLD.size == 1 else _largest([seconds])[0]


def _largest(values: Any) -> list[float]:
    import torch
    import torch.distributed as dist

    found = torch.tensor(list(values), dtype=torch.float64)
    dist.all_reduce(found, dist.ReduceOp.MAX, group=WORLD.talk)
    largest: list[float] = found.tolist()
    return largest
