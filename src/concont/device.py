"""Where to compute."""

import torch

from concont.errors import UsageError


def choose_device(name: str) -> torch.device:
    """The device that a setting names; `auto` is the GPU where there is one."""
    if name not in ("auto", "cpu", "cuda"):
        raise UsageError(f"the device must be 'auto', 'cpu' or 'cuda', not {name!r}")
    if name == "cuda" and not torch.cuda.is_available():
        raise UsageError("the device is to be cuda, but no CUDA device can be used here; try cpu")
    return torch.device("cuda" if name != "cpu" and torch.cuda.is_available() else "cpu")
