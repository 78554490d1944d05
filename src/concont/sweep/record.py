"""A finished run as one small record that can be carried anywhere."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from concont.config.registry import is_reference
from concont.config.resolve import check
from concont.errors import ConcontError, DataError
from concont.runs.contents import VerdictFile
from concont.runs.folder import RunFolder, write_text
from concont.runs.json_text import read_json
from concont.runs.settings import DATA_PATHS, NAMED_SOURCES, Settings, code_name
from concont.runs.summary import Summary
from concont.types import Share

Record = dict[str, Any]
OF_RECORD = ("summary.json", "data.json", "metrics.jsonl", "verdict.json", "environment.json")
MOMENTS = 50  # at most, of the thresholds over time


@dataclass(frozen=True, kw_only=True)
class RecordSchema(Summary):
    """What a record must hold to enter a ledger, whoever wrote it: a summary, and how it came."""

    settings: dict[str, Any]
    curve: list[tuple[int, Share]]
    environment: dict[str, Any]
    thresholds: list[tuple[int, list[float]]] | None = None
    verdict: VerdictFile | None = None


def of_run(folder: RunFolder) -> Record:
    """The record of a finished run; nothing in it names a path."""
    from concont.training.trainers import read_run_settings

    data, summary = folder.read_data(), folder.read_summary()
    folder.require_whole(*OF_RECORD)
    settings = read_run_settings(folder).as_dict()
    lines = folder.metrics()
    kept = [line for line in lines if line["thresholds"] is not None]
    every = -(-len(kept) // MOMENTS) or 1
    return {
        **summary.as_dict(),
        "settings": {
            **settings,
            "data": _without_paths(settings["data"], data),
            "model": _without_folders(settings["model"]),
            "method": _without_folder(settings["method"]),
        },
        "data_digest": data["digest"],
        "sets_hash": data.get("sets_hash"),
        "curve": [[m["epoch"], m["accuracy"]] for m in lines if m["accuracy"] is not None],
        "thresholds": [
            [line["epoch"], [round(t, 4) for t in line["thresholds"]]] for line in kept[::-every]
        ][::-1],
        "verdict": folder.read_verdict() if (folder / "verdict.json").is_file() else None,
        "environment": _without_command(folder.read_environment()),
    }


def write(path: Path, record: Record) -> None:
    """A whole file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps(record) + "\n")


def read(path: Path) -> list[Record]:
    """The records of a file: one, or a list of them."""
    content = read_json(path)
    records = content if isinstance(content, list) else [content]
    for record in records:
        check_record(record, path)
    return records


def check_record(record: Any, path: Path) -> None:
    """What is no record enters no ledger, which would keep it for ever."""
    try:
        RecordSchema.from_dict(record)
    except DataError as error:
        raise DataError(f"{path} is no record of a run: {error}") from None


def settings_in(record: Record) -> Settings | None:
    """The record's settings as this version reads them; None where it no longer can.

    A setting that is newer than the record has its default, which is what was done before.
    """
    try:
        return check(record["settings"])
    except ConcontError:
        return None


def key_of(record: Record) -> str:
    """The hash by which this version knows the record's run; what a record claims is not believed.

    Of settings that cannot be read it is one of their own, which stands in no other run's way.
    """
    settings = settings_in(record)
    if settings is None:
        known = [record.get(name) for name in ("settings", "data_digest", "sets_hash")]
        text = json.dumps(known, sort_keys=True)
        return f"unread-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    return settings.hash(record.get("data_digest"), record.get("sets_hash"))


def _without_paths(section: dict[str, Any], data: dict[str, Any]) -> dict[str, Any]:
    """The settings of the data, with what it holds in the place of where it lay."""
    named = section["source"] in NAMED_SOURCES
    return {
        **section,
        **dict.fromkeys(DATA_PATHS),
        "source": section["source"] if named else data["digest"],
        "candidates": None if section["candidates"] is None else data.get("sets_hash"),
    }


def _without_folder(section: dict[str, Any]) -> dict[str, Any]:
    """The settings of the method; one of the user's own is named by its file and class alone."""
    name = section["name"]
    return {**section, "name": code_name(name) if is_reference(name) else name}


def _without_folders(section: dict[str, Any]) -> dict[str, Any]:
    """The settings of the network; files of weights and code, known by digests, by name alone."""
    files = {name: section.get(name) for name in ("weights", "start")}
    names = {name: PurePath(path).name for name, path in files.items() if path}
    own = section.get("own")
    return {**section, **names, "own": None if own is None else code_name(own)}


def _without_command(environment: dict[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in environment.items() if name != "command"}
    if "earlier" in kept:
        kept["earlier"] = [_without_command(start) for start in kept["earlier"]]
    return kept
