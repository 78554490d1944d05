"""A finished run as one small record that can be carried anywhere."""

import json
from pathlib import Path
from typing import Any

from concont.config import check
from concont.errors import ConcontError, DataError
from concont.recipes.shelf import read_yaml
from concont.runs import RunFolder
from concont.settings import Settings

Record = dict[str, Any]
NEEDED = ("settings_hash", "settings", "accuracy_last", "accuracy_best", "curve", "environment")
MOMENTS = 50  # at most, of the thresholds over time


def of_run(folder: RunFolder) -> Record:
    """The record of a finished run; nothing in it names a path."""
    summary = folder.read_json("summary.json")
    text = folder.require("config.yaml").read_text("utf-8")
    settings: dict[str, Any] = read_yaml(text, str(folder / "config.yaml"))
    settings["data"]["root"] = None
    environment = folder.read_json("environment.json")
    environment.pop("command", None)
    lines = folder.metrics()
    kept = [line for line in lines if line["thresholds"] is not None]
    every = -(-len(kept) // MOMENTS) or 1
    return {
        **summary,
        "settings": settings,
        "data_digest": folder.read_json("data.json")["digest"],
        "curve": [[m["epoch"], m["accuracy"]] for m in lines if m["accuracy"] is not None],
        "thresholds": [
            [line["epoch"], [round(t, 4) for t in line["thresholds"]]] for line in kept[::-every]
        ][::-1],
        "verdict": folder.read_json("verdict.json")
        if (folder / "verdict.json").is_file()
        else None,
        "environment": environment,
    }


def write(path: Path, record: Record) -> None:
    """A whole file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    RunFolder(path.parent).write_json(path.name, record)


def read(path: Path) -> list[Record]:
    """The records of a file, one or a list of them, or of a run folder."""
    if path.is_dir() and (path / "summary.json").is_file():
        return [of_run(RunFolder(path))]
    if path.is_dir():
        inside = sorted([*path.glob("*.json"), *(p.parent for p in path.glob("*/summary.json"))])
        return [record for entry in inside for record in read(entry)]
    try:
        content = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise DataError(f"{path}: no such file or folder") from None
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read: {error}") from None
    records = content if isinstance(content, list) else [content]
    for record in records:
        missing = [k for k in NEEDED if not isinstance(record, dict) or k not in record]
        if missing:
            raise DataError(f"{path} is no record of a run: it has no {', '.join(missing)}")
    return records


def settings_of(record: Record) -> Settings | None:
    """The record's settings as this version reads them; None where it no longer can.

    A setting that is newer than the record has its default, which is what was done before.
    """
    try:
        return check(record["settings"])
    except ConcontError:
        return None


def key_of(record: Record) -> str:
    """The hash by which this version knows the record's run."""
    settings = settings_of(record)
    if settings is None:
        return str(record["settings_hash"])
    return settings.hash(record.get("data_digest"), record.get("sets_hash"))
