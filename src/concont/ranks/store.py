"""The store that rank 0 opens and all ranks read, found within a stated time or not at all.

PyTorch's own search takes a multiple of the time that it is given, and waits for ever for a program
that takes connections and says nothing.
"""

import os
import socket
import threading
import time
from concurrent.futures import Future
from datetime import timedelta
from typing import Any

from concont.errors import UsageError, printable

ATTEMPT = 2.0  # seconds that one attempt to connect may take
PAUSE = 0.05  # seconds between two of them
LONGER = 60.0  # seconds that PyTorch searches on: what it says when it gives up helps nobody
SEARCH = "search for the store"  # the thread that PyTorch searches in
AGENT = "TORCHELASTIC_USE_AGENT_STORE"  # "True": torchrun itself has opened the store


def open_store(rank: int, seconds: float) -> Any:
    """The store at MASTER_ADDR and MASTER_PORT; a UsageError says why there is none."""
    end = time.monotonic() + seconds
    address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    where = f"{printable(address)}:{port}"
    _refuse_unknown(rank, address)
    if rank or os.environ.get(AGENT) == "True":
        wait_for_answer(rank, address, port, seconds)
    from torch.distributed.rendezvous import rendezvous

    found: Future[Any] = Future()

    def meet() -> None:
        try:
            limit = timedelta(seconds=seconds + LONGER)
            found.set_result(next(rendezvous("env://", timeout=limit)))
        except BaseException as error:
            found.set_exception(error)

    threading.Thread(target=meet, name=SEARCH, daemon=True).start()
    try:
        store, _, _ = found.result(max(ATTEMPT, end - time.monotonic()))
    except TimeoutError:
        raise UsageError(f"the ranks do not meet at {where} within {seconds:g} s") from None
    except (RuntimeError, ValueError) as error:
        if "EADDRINUSE" in str(error) or "already in use" in str(error):
            raise UsageError(
                f"{where} is in use by another program: choose another --master-port"
            ) from None
        said = printable(str(error).partition("\n")[0])
        raise UsageError(f"the ranks do not meet at {where}: {said}") from None
    store.set_timeout(timedelta(seconds=seconds))
    return store


def is_searching() -> bool:
    """Whether PyTorch goes on with a search that was given up, so that no usual exit is safe."""
    return any(thread.name == SEARCH for thread in threading.enumerate())


def _refuse_unknown(rank: int, address: str) -> None:
    """Refuse a name that no machine has; one that cannot be asked about now may be known later."""
    try:
        socket.getaddrinfo(address, None, type=socket.SOCK_STREAM)
    except (socket.gaierror, UnicodeError) as error:
        if getattr(error, "errno", None) != socket.EAI_AGAIN:
            raise UsageError(
                f"rank {rank} knows no machine '{printable(address)}' (MASTER_ADDR)"
            ) from None


def wait_for_answer(rank: int, address: str, port: int, seconds: float) -> None:
    """Wait until something takes connections there: rank 0 may start later than the others."""
    end = time.monotonic() + seconds
    while True:
        left = end - time.monotonic()
        try:
            socket.create_connection((address, port), min(ATTEMPT, max(PAUSE, left))).close()
            return
        except OSError as error:
            why = error.strerror or "no answer"
        if left <= 0:
            raise UsageError(
                f"rank {rank} reaches nobody at {printable(address)}:{port} within {seconds:g} s "
                f"({why}); MASTER_ADDR and MASTER_PORT say where rank 0 is"
            )
        time.sleep(PAUSE)
