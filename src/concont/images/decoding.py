"""Image files read once: into rows of a pack, or to see whether they can be decoded.

As a process of its own, which imports little: it is told its work on standard input, a JSON list of
(row, path) a line, and answers each with a line on standard output; pixels go straight into the
pack.
"""

import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from concont.errors import DataError
from concont.images.files import decode_image, read_content, verify_content
from concont.images.packs import Form, write_all


class Decoded(NamedTuple):
    """What became of an image file."""

    row: int
    content: str | None = None  # the file's SHA-256 sum, if there was anything to read
    written: bool = False  # not if the same content is in another pack
    problem: str | None = None  # why it cannot be decoded


class Decoder:
    """Writes images to their rows of a pack, unless they are known already."""

    def __init__(self, pack: str, first_row: int, form: Form, known: Iterable[str]) -> None:
        self.handle = os.open(pack, os.O_WRONLY)
        self.first_row, self.form, self.known = first_row, form, frozenset(known)

    def __call__(self, row: int, path: str) -> Decoded:
        """Read a file once: its sum, and its pixels unless they are known already."""
        return _read(row, path, self._write)

    def close(self) -> None:
        """Let go of the pack."""
        os.close(self.handle)

    def _write(self, row: int, name: str, content: bytes) -> bool:
        if name in self.known:
            return False
        form = self.form
        pixels = decode_image(content, (form.height, form.width), form.channels, form.fit)
        write_all(self.handle, pixels.data.cast("B"), self.first_row + row * form.nbytes)
        return True


def verify_file(row: int, path: str) -> Decoded:
    """Read a file once: its sum, and whether it can be decoded."""
    return _read(row, path, _verify)


def _verify(row: int, name: str, content: bytes) -> bool:
    verify_content(content)
    return False


def _read(row: int, path: str, take: Callable[[int, str, bytes], bool]) -> Decoded:
    """Hand on row, sum and content of a file to be decoded; told back: whether it was written."""
    name = None
    try:
        content = read_content(path)
        name = hashlib.sha256(content).hexdigest()
        return Decoded(row, name, take(row, name, content))
    except DataError as error:
        return Decoded(row, name, problem=str(error))


def serve(target: dict[str, Any] | None) -> None:
    """Read what standard input names, until it ends; target: the `Decoder`'s, None to verify."""
    try:
        read: Callable[[int, str], Decoded] = verify_file
        if target is not None:
            read = Decoder(**{**target, "form": Form(**target["form"])})
        for line in sys.stdin.buffer:
            answer: Any = [read(row, path) for row, path in json.loads(line)]
            _answer(answer)
    except BrokenPipeError:  # nobody is left to hear of it
        os._exit(1)
    except OSError as error:
        _answer({"error": [error.errno, error.strerror]})


def _answer(content: Any) -> None:
    sys.stdout.buffer.write(json.dumps(content).encode() + b"\n")
    sys.stdout.buffer.flush()
