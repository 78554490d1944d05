"""YAML that anybody may have written: plain values, within bounds that hold before it is built."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import yaml
from yaml import events

from concont.errors import UsageError

LARGEST = 2**20  # bytes of a text
DEEPEST = 20  # lists and mappings within each other; settings need four
MOST_VALUES = 20_000  # keys and values of a text


class _Loader(yaml.SafeLoader):
    """YAML 1.2's numbers: `1e-3` is one, which PyYAML alone reads as text. A key stands once."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """As PyYAML's, which lets the last of equal keys win."""
        keys = Counter((key.tag, key.value) for key, _ in node.value if key.id == "scalar")
        for (_, name), times in keys.items():
            if times > 1:
                raise yaml.MarkedYAMLError(problem=f"{name!r} stands {times} times in a mapping")
        return super().construct_mapping(node, deep)


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(\d+(\.\d*)?|\.\d+)[eE][-+]?\d+$"),
    list("-+.0123456789"),
)


def read_yaml(text: str, where: str) -> Any:
    """Plain values from YAML text; `where` names it in an error.

    Anchors are refused: what they stand for can be larger than any memory, or hold itself.
    """
    try:
        _refuse_out_of_bounds(text, where)
        return yaml.load(text, _Loader)
    except (yaml.YAMLError, ValueError) as error:  # a date that is none is a ValueError
        reason = " ".join(str(error).split())
        raise UsageError(f"{where} is not valid YAML: {reason}") from None


def read_yaml_file(path: Path, where: str) -> Any:
    """The same from a file."""
    try:
        if not path.is_file():  # to read a pipe or a device may never end
            raise UsageError(f"{where} cannot be read: there is no such file")
        if path.stat().st_size > LARGEST:
            raise UsageError(f"{where} is longer than {LARGEST:,} bytes")
        text = path.read_text("utf-8")
    except UnicodeDecodeError:
        raise UsageError(f"{where} cannot be read: it is not text in UTF-8") from None
    except OSError as error:
        raise UsageError(f"{where} cannot be read: {error.strerror or error}") from None
    return read_yaml(text, where)


def _refuse_out_of_bounds(text: str, where: str) -> None:
    """Look at the text event by event, so that what is too deep or too long ends the look."""
    if len(text) > LARGEST:
        raise UsageError(f"{where} is longer than {LARGEST:,} letters")
    depth = 0
    for number, event in enumerate(yaml.parse(text, _Loader)):
        if isinstance(event, events.NodeEvent) and event.anchor is not None:
            raise UsageError(f"{where} has an anchor (& or *), which is not read; write it out")
        depth += isinstance(event, events.CollectionStartEvent)
        depth -= isinstance(event, events.CollectionEndEvent)
        if depth > DEEPEST:
            raise UsageError(f"{where} is nested more than {DEEPEST} deep")
        if number > MOST_VALUES:
            raise UsageError(f"{where} holds more than {MOST_VALUES:,} values")
