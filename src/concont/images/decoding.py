"""Image files decoded into rows of a pack; as a process of its own, which imports little.

Such a process is told its work on standard input, a JSON list of (row, path) a line, and answers
each with a line on standard output; pixels go straight into the pack.
"""

import hashlib
import json
import os
import sys
from collections.abc import Iterable
from typing import Any, NamedTuple

from concont.errors import DataError
from concont.images.files import decode_image, read_content
from concont.images.packs import Form, write_all


class Decoded(NamedTuple):
    """What became of an image file."""

    row: int
    content: str | None = None  # the file's SHA-256 sum
    written: bool = False  # not if the same content is in another pack
    problem: str | None = None  # why it cannot be read


class Decoder:
    """Writes images to their rows of a pack."""

    def __init__(self, pack: str, first_row: int, form: Form, known: Iterable[str]) -> None:
        self.handle = os.open(pack, os.O_WRONLY)
        self.first_row, self.form, self.known = first_row, form, frozenset(known)

    def __call__(self, row: int, path: str) -> Decoded:
        """Read a file once: its sum, and its pixels unless they are known already."""
        form = self.form
        try:
            content = read_content(path)
            name = hashlib.sha256(content).hexdigest()
            if name in self.known:
                return Decoded(row, name)
            pixels = decode_image(content, (form.height, form.width), form.channels, form.fit)
        except DataError as error:
            return Decoded(row, problem=str(error))
        write_all(self.handle, pixels.data.cast("B"), self.first_row + row * form.nbytes)
        return Decoded(row, name, written=True)

    def close(self) -> None:
        """Let go of the pack."""
        os.close(self.handle)


def serve(job: dict[str, Any]) -> None:
    """Decode what standard input names, until it ends."""
    form = Form(**job["form"])
    try:
        decoder = Decoder(job["pack"], job["first_row"], form, job["known"])
        for line in sys.stdin.buffer:
            answer: Any = [decoder(row, path) for row, path in json.loads(line)]
            _answer(answer)
    except BrokenPipeError:  # nobody is left to hear of it
        os._exit(1)
    except OSError as error:
        _answer({"error": [error.errno, error.strerror]})


def _answer(content: Any) -> None:
    sys.stdout.buffer.write(json.dumps(content).encode() + b"\n")
    sys.stdout.buffer.flush()
