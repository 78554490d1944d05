"""The checksum of an ONNX file: the model's property `sha256`, of all bytes that stand before it.

It is the last field of the file, so it can be checked without the package `onnx`, and before
anything reads a damaged model. A flipped bit in its own first bytes makes it another field that
says nothing of the graph: the file has no checksum then, and is as it was written.
"""

import hashlib

# A field of `ModelProto`: metadata_props (72), 74 bytes; its key, 6 bytes; its value, 64 bytes.
OPENING = b"\x72\x4a\x0a\x06sha256\x12\x40"
SIZE = len(OPENING) + 64


def add_checksum(content: bytes) -> bytes:
    """A model's bytes, which have no checksum yet, and their checksum."""
    return content + _make_field(content)


def fits_checksum(content: bytes) -> bool:
    """Whether a file is as `add_checksum` made it; one without a checksum is taken as it is."""
    start = content.rfind(OPENING)
    return start < 0 or content[start:] == _make_field(memoryview(content)[:start])


def _make_field(content: bytes | memoryview) -> bytes:
    return OPENING + hashlib.sha256(content).hexdigest().encode()
