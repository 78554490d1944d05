"""The parts of a MATLAB file of level 5, looked at before SciPy reads them.

SciPy takes the type of a variable's numbers, as the file has it, for a place in a table, and asks
nothing: one that does not exist ends the process. The form is MathWorks' "MAT-File Format".
"""

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Literal, NamedTuple

HEADER = 128  # bytes; the last two say which end of a number comes first
MATRIX, COMPRESSED = 14, 15  # types of whole variables
NUMBERS = frozenset((1, 2, 3, 4, 5, 6, 7, 9, 12, 13))  # types of numbers
NUMERIC = range(5, 16)  # classes of variables: sparse, then floats and integers
DESCRIBING = 3  # parts before the numbers: flags, dimensions, name
PARTS, SLACK = 3, 2**16  # numbers may be complex, or sparse; and bytes beside them


class Part(NamedTuple):
    """A variable, or a part of one: of what type, and its bytes, of a part the first eight."""

    kind: int
    content: bytes


def refuse_unknown_types(path: Path, largest: int) -> None:
    """A ValueError where a numeric variable has parts that are no numbers.

    largest: bytes that the variables to be read may take; what lies beyond is not looked at.
    """
    with open(path, "rb") as file:
        order = "<" if file.read(HEADER)[-2:] == b"IM" else ">"
        for kind, content in _list_variables(file, order, PARTS * largest + SLACK):
            if kind == MATRIX and not _holds_numbers(content, order):
                raise ValueError("numbers of an unknown type")


def _list_variables(file: BinaryIO, order: str, largest: int) -> Iterator[Part]:
    while len(tag := file.read(8)) == 8:
        kind, size = struct.unpack(f"{order}2I", tag)
        after = file.tell() + size
        content = file.read(min(size, largest))
        if kind == COMPRESSED:
            content = zlib.decompressobj().decompress(content, largest)
            kind, content = int.from_bytes(content[:4], _word(order)), content[8:]
        yield Part(kind, content)
        file.seek(after)


def _holds_numbers(variable: bytes, order: str) -> bool:
    """Whether all parts of a numeric variable are numbers; others are not read."""
    parts = list(_list_parts(variable, order))
    if not parts or not parts[0].content:
        return True  # SciPy refuses it by itself
    flags = int.from_bytes(parts[0].content[:4], _word(order))
    if flags & 0xFF not in NUMERIC:
        return True
    return all(part.kind in NUMBERS for part in parts[DESCRIBING:])


def _list_parts(variable: bytes, order: str) -> Iterator[Part]:
    place = 0
    while place + 8 <= len(variable):
        kind, size = struct.unpack_from(f"{order}2I", variable, place)
        if kind >> 16:  # of up to four bytes, which stand in the tag itself
            yield Part(kind & 0xFFFF, variable[place + 4 : place + 8])
            place += 8
        else:
            yield Part(kind, variable[place + 8 : place + 8 + min(size, 8)])
            place += 8 + size + -size % 8


def _word(order: str) -> Literal["little", "big"]:
    return "little" if order == "<" else "big"
