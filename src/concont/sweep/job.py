"""One run to do: complete settings, and the hash that its record will have."""

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from concont.data.candidate_file import read_candidate_sets
from concont.data.own_data import load_data
from concont.errors import UsageError
from concont.runs.settings import NAMED_SOURCES, Data, Settings


@dataclass(frozen=True)
class Job:
    """A run's complete settings, as `config.yaml` holds them, and what people call it.

    Two jobs are the same run if their keys are equal, whatever their names are.
    """

    settings: Settings = field(compare=False)
    name: str = field(compare=False)
    key: str = field(init=False)  # the settings hash of the finished run's record

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", _hash_of_record(self.settings))


@dataclass(frozen=True)
class DataFile:
    """What a file of data is known by, and how many rows there are to train on."""

    digest: str
    n_train: int


def read_data_file(data: Data) -> DataFile:
    """Of data that has no name of its own; read once, as long as the file stays as it is."""
    if not data.source:
        raise UsageError("it does not say what to train on, as data: {source: digits}")
    path = Path(data.source)
    written = path.stat().st_mtime_ns if path.exists() else 0
    return _read_data_file(data, written)


@cache
def _read_data_file(data: Data, written: int) -> DataFile:
    dataset = load_data(data)
    return DataFile(dataset.digest, len(dataset.x_train))


def _hash_of_record(settings: Settings) -> str:
    """Data without a name is identified by its content, and so is a file of candidate sets."""
    data, digest, sets_hash = settings.data, None, None
    if data.source not in NAMED_SOURCES:
        digest = read_data_file(data).digest
    if data.candidates is not None:
        sets_hash = read_candidate_sets(Path(data.candidates)).hash
    return settings.hash(digest, sets_hash)
