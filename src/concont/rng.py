"""Named, independent random streams derived from one seed."""

import hashlib
import threading

import numpy as np
import torch

SEEDING = threading.RLock()  # for whoever seeds torch's own stream, which all threads share


def derive(seed: int, *names: str | int) -> int:
    """A 63-bit seed for the stream called `names`; other names give unrelated streams."""
    text = "/".join(map(str, (seed, *names)))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


def torch_stream(
    seed: int, *names: str | int, device: str | torch.device = "cpu"
) -> torch.Generator:
    """A torch generator for the stream called `names`."""
    return torch.Generator(device).manual_seed(derive(seed, *names))


def frozen_stream(seed: int, *names: str | int) -> np.random.RandomState:
    """A NumPy stream that gives the same numbers on every machine and NumPy version.

    NumPy guarantees that for RandomState alone; its newer generators may change.
    """
    value = derive(seed, *names)
    return np.random.RandomState([value & 0xFFFFFFFF, value >> 32])
