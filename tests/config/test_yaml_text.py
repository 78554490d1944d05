import os
import time

import pytest

from concont.config import yaml_text
from concont.config.resolve import parse_assignments, read_settings, resolve
from concont.config.yaml_text import DEEPEST, LARGEST, MOST_VALUES, read_yaml, read_yaml_file
from concont.errors import UsageError
from concont.sweep.sweep_file import read_jobs

PAIRS = zip("abc", "bcd", strict=True)
LAUGHS = "a: &a [x, x]\n" + "".join(f"{b}: &{b} [*{a}, *{a}]\n" for a, b in PAIRS)
HOSTILE = {
    "billion laughs": (LAUGHS, "has an anchor"),
    "an anchor within itself": ("a: &a [*a]", "has an anchor"),
    "an anchor that is not used": ("train: &t {epochs: 1}", "has an anchor"),
    "an anchor that is not there": ("train: *t", "has an anchor"),
    "merged mappings": ("a: &a {x: 1}\nb: {<<: *a}", "has an anchor"),
    "brackets": ("[" * 100_000, "nested more than"),
    "braces": ("{a: " * 100_000, "nested more than"),
    "lines": ("\n".join(" " * k + "a:" for k in range(1000)), "nested more than"),
    "dashes": ("- " * 10_000, "nested more than"),
    "many values": ("[" + "1," * (MOST_VALUES + 1) + "]", "holds more than 20,000 values"),
    "a long text": ("a" * (LARGEST + 1), "is longer than"),
    "a tag with code": ("!!python/object/apply:os.system ['exit']", "is not valid YAML"),
    "a key twice": ("train: {epochs: 1}\ntrain: {epochs: 2}", "'train' stands 2 times"),
    "a key that is a list": ("? [a]\n: b", "is not valid YAML"),
    "a long number": ("a: " + "1" * 5000, "is not valid YAML"),
    "control characters": ("a: \x1b[31m", "is not valid YAML"),
    "two documents": ("a: 1\n---\nb: 2", "is not valid YAML"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_text_is_refused_at_once_in_one_line(kind, tmp_path):
    text, message = HOSTILE[kind]
    path = tmp_path / "odd.yaml"
    path.write_text(text)
    began = time.perf_counter()
    for read in (
        lambda: read_yaml(text, "odd.yaml"),
        lambda: read_settings(path),
        lambda: resolve({}, recipe=str(path)),
        lambda: read_jobs(path),
        lambda: parse_assignments([f"train.epochs={text}"]),
    ):
        with pytest.raises(UsageError, match=message) as caught:
            read()
        assert "\n" not in str(caught.value).replace(text, "")
    assert time.perf_counter() - began < 30


def test_what_is_within_the_bounds_is_read():
    nested = "[" * DEEPEST + "]" * DEEPEST
    assert read_yaml(nested, "x") is not None
    assert read_yaml("a: 1e-3\nb: {1: x, '1': y}", "x") == {"a": 1e-3, "b": {1: "x", "1": "y"}}
    assert read_yaml("", "x") is None


def test_a_path_of_a_setting_has_an_end():
    with pytest.raises(UsageError, match="write it as section.key=value"):
        parse_assignments([".".join(["a"] * 10_000) + "=1"])


def test_what_is_no_plain_file_is_not_waited_for(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "pipe.yaml")
    for path in (tmp_path / "pipe.yaml", tmp_path, tmp_path / "none.yaml"):
        with pytest.raises(UsageError, match="cannot be read: there is no such file"):
            read_yaml_file(path, str(path))
    monkeypatch.setattr(yaml_text, "LARGEST", 3)
    (tmp_path / "long.yaml").write_text("a: 1")
    with pytest.raises(UsageError, match="is longer than 3 bytes"):
        read_yaml_file(tmp_path / "long.yaml", "long.yaml")
