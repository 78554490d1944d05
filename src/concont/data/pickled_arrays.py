"""The pickles in which CIFAR is passed around, read so that they can run no code.

A pickle names functions to call. Here such a name is one of three, each of which stands for a
record of plain values; any other is refused, and so is one that asks for more memory than its own
size.
"""

import io
import pickle
import pickletools
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from concont.errors import DataError, printable

LARGEST = 2**30  # bytes; CIFAR's files have up to 156 million
KINDS = "biuf"  # of numbers
PLACES = ("PUT", "BINPUT", "LONG_BINPUT")  # opcodes that name a place in a list
BROKEN = (pickle.UnpicklingError, EOFError, LookupError, ValueError, TypeError, AttributeError)
TOO_LARGE = (MemoryError, OverflowError, RecursionError)


class _Dtype:
    """A type of numbers, by what it is called."""

    def __init__(self, name: Any, *_: Any) -> None:
        self.found = np.dtype(name.decode("ascii") if isinstance(name, bytes) else str(name))
        if self.found.kind not in KINDS:
            raise pickle.UnpicklingError(f"an array of {self.found} is not read")

    def __setstate__(self, state: Any) -> None:
        """The order of the bytes; of one byte there is none."""
        if state[1] in (b">", ">"):
            self.found = self.found.newbyteorder(">")


class _Array:
    """An array, once its bytes have come."""

    def __init__(self, *_: Any) -> None:
        self.found: NDArray[Any] | None = None

    def __setstate__(self, state: Any) -> None:
        """Version, shape, type, whether columns come first, and the bytes."""
        _, shape, dtype, columns_first, content = state
        if not isinstance(dtype, _Dtype) or not isinstance(content, bytes):
            raise pickle.UnpicklingError("an array is not as CIFAR's are")
        order: Literal["C", "F"] = "F" if columns_first else "C"
        self.found = np.frombuffer(content, dtype.found).reshape(tuple(shape), order=order)


class _ArrayUnpickler(pickle.Unpickler):
    """Reads arrays, lists, dicts and text, and nothing that could run code."""

    ALLOWED: ClassVar[dict[tuple[str, str], Any]] = {
        ("numpy.core.multiarray", "_reconstruct"): _Array,
        ("numpy._core.multiarray", "_reconstruct"): _Array,
        ("numpy", "ndarray"): object,  # an argument of the first, and of no use on its own
        ("numpy", "dtype"): _Dtype,
    }

    def find_class(self, module: str, name: str) -> Any:
        """Refuse every type that CIFAR's files do not hold."""
        if (module, name) not in self.ALLOWED:
            raise pickle.UnpicklingError(f"{module}.{name} is not allowed in one of CIFAR's files")
        return self.ALLOWED[module, name]


def unpickle_arrays(path: Path) -> dict[bytes, Any]:
    """What one of CIFAR's files holds: numbers, names, lists of them, and arrays."""
    if path.stat().st_size > LARGEST:
        raise DataError(f"{path}: not one of CIFAR's files, which are smaller")
    content = path.read_bytes()
    try:
        _refuse_far_places(content)
        found = _ArrayUnpickler(io.BytesIO(content), encoding="bytes").load()
    except (*BROKEN, *TOO_LARGE) as error:
        reason = printable(error) or type(error).__name__
        raise DataError(f"{path}: not one of CIFAR's files, or cut short ({reason})") from None
    if not isinstance(found, dict):
        raise DataError(f"{path}: not one of CIFAR's files")
    return {
        name: value.found if isinstance(value, _Array) else value for name, value in found.items()
    }


def _refuse_far_places(content: bytes) -> None:
    """A place in the list of what was read is one of so many; memory is taken up to the highest."""
    for opcode, place, _ in pickletools.genops(content):
        if opcode.name in PLACES and (place is None or place > len(content)):
            raise pickle.UnpicklingError("it asks for more places than it has bytes")
