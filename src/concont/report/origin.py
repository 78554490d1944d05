"""What a run was: data, settings in short, hardware, software, the command that began it."""

import shlex
from collections.abc import Iterator
from pathlib import PurePath

from concont.errors import count, printable
from concont.report.record import RunRecord
from concont.report.wording import show_setting
from concont.types import Plain


def describe_origin(record: RunRecord) -> list[tuple[str, str]]:
    """Terms and what is said of each; what is not known is left out."""
    found = [
        *_describe_data(record),
        *_describe_training(record),
        *_describe_machine(record.environment or {}),
    ]
    return [(term, printable(text)) for term, text in found if text]


def show_command(words: list[str]) -> str:
    """As it would be typed where its files lie: full paths without their folders."""
    if not words:
        return ""
    name = PurePath(words[0]).name
    program = "concont" if name == "__main__.py" else name
    return shlex.join([program, *map(_hide_folder, words[1:])])


def _hide_folder(word: str) -> str:
    """A full path by its last part, also as the value of `--option=PATH`."""
    name, equals, value = word.rpartition("=")
    path = PurePath(value)
    return f"{name}{equals}{path.name}" if path.is_absolute() else word


def _describe_data(record: RunRecord) -> Iterator[tuple[str, str]]:
    data = record.data or {}
    source = record.get_setting("data", "source")
    yield "Data", PurePath(str(source)).name if source else "arrays given in Python"
    if data:
        shape = " x ".join(map(str, data.get("shape", ())))
        sizes = f"{data.get('n_train', 0):,} to learn from, {data.get('n_partial', 0):,} of them "
        yield "Images", f"{sizes}with candidate sets; {shape}; {len(record.classes):,} classes"
        yield "Digest of the data", str(data.get("digest", ""))[:16]


def _describe_training(record: RunRecord) -> Iterator[tuple[str, str]]:
    yield "Method", record.method
    yield "Recipe", str((record.settings or {}).get("recipe") or "")
    for term, section, name in (
        ("Share or number with candidate sets", "data", "labeled"),
        ("Chance of a wrong label in a set", "data", "ambiguity"),
        ("Seed of the data", "data", "seed"),
        ("Seed of the training", "train", "seed"),
        ("Batch", "train", "batch_size"),
    ):
        value = record.get_setting(section, name)
        yield term, "" if value is None else show_setting(value)
    if record.summary is not None:
        yield "Known by", record.summary.settings_hash


def _describe_machine(environment: Plain) -> Iterator[tuple[str, str]]:
    device, cpu = environment.get("device"), environment.get("cpu")
    numbers = (("core", environment.get("cpus")), ("thread", environment.get("threads")))
    used = ", ".join(count(n, thing) for thing, n in numbers if isinstance(n, int))
    yield "Device", "" if device is None else "CPU" if device == "cpu" else str(device)
    yield "Processor", f"{cpu}, {used} used" if cpu else ""
    names = ("concont", "torch", "numpy", "python")
    versions = [f"{name} {environment[name]}" for name in names if environment.get(name)]
    yield "Software", ", ".join([*versions, str(environment.get("platform", ""))])
    commit, clean = environment.get("commit"), environment.get("clean")
    yield "Commit", f"{commit}{'' if clean else ', modified'}" if commit else ""
    words = environment.get("command")
    yield "Command", show_command([str(word) for word in words]) if isinstance(words, list) else ""
