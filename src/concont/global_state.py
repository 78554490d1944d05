"""What a training changes in the process that it runs in, put back when it ends."""

import os
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

CUBLAS = "CUBLAS_WORKSPACE_CONFIG"


class _Keeper:
    """Of trainings that run at once the first one in keeps the state, the last one out restores."""

    lock = threading.Lock()
    inside = 0
    restore: Callable[[], None] = staticmethod(lambda: None)


@contextmanager
def kept_global_state() -> Iterator[None]:
    """Leave the random streams of Python, NumPy and PyTorch, and its determinism, as they were.

    Also where what is done in between fails. A forked child keeps its single thread.
    """
    with _Keeper.lock:
        if _Keeper.inside == 0:
            _Keeper.restore = _remember()
        _Keeper.inside += 1
    try:
        yield
    finally:
        with _Keeper.lock:
            _Keeper.inside -= 1
            if _Keeper.inside == 0:
                _Keeper.restore()


def _remember() -> Callable[[], None]:
    """A function that brings back what there is now."""
    python, numpy, cpu = random.getstate(), np.random.get_state(), torch.get_rng_state()
    used = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    gpus = torch.cuda.get_rng_state_all() if used else None
    seed = torch.initial_seed()  # what GPUs begin with that nobody has used yet
    strict = torch.are_deterministic_algorithms_enabled()
    warns = torch.is_deterministic_algorithms_warn_only_enabled()
    cudnn: Any = torch.backends.cudnn
    fastest, same = cudnn.benchmark, cudnn.deterministic
    workspace = os.environ.get(CUBLAS)

    def restore() -> None:
        random.setstate(python)
        np.random.set_state(numpy)
        torch.set_rng_state(cpu)
        if gpus is not None:
            torch.cuda.set_rng_state_all(gpus)
        elif torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
            torch.cuda.manual_seed_all(seed)
        torch.use_deterministic_algorithms(strict, warn_only=warns)
        cudnn.benchmark, cudnn.deterministic = fastest, same
        if workspace is None:
            os.environ.pop(CUBLAS, None)
        else:
            os.environ[CUBLAS] = workspace

    return restore
