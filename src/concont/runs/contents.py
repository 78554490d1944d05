"""A run's files: what they are, what they must hold, and what to do if they do not."""

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from annotated_types import Len, MinLen

from concont.errors import DataError
from concont.runs.summary import Text, checker, name_first_problem
from concont.types import AtLeastOne, Count, Share

START_AFRESH = "put it back from a copy, or start the run afresh with --overwrite"
WRITE_AGAIN = "and `concont train --resume` of the folder writes"
CURES = {
    "environment.json": "delete it to go on without it",
    "model.safetensors": f"delete it and summary.json, {WRITE_AGAIN} both again",
    "verdict.json": f"delete it and summary.json, {WRITE_AGAIN} both again",
    "summary.json": f"delete it, {WRITE_AGAIN} it again",
}


@dataclass(frozen=True)
class Normalisation:
    """Of each channel of the images."""

    mean: list[float]
    std: list[float]


@dataclass(frozen=True)
class DataFile:
    """A run's data as a later prediction needs it."""

    classes: Annotated[list[str], MinLen(1)]
    shape: Annotated[list[AtLeastOne], Len(1, 3)]  # (H, W, channels) of an image, (D,) of features
    normalisation: Normalisation | None
    digest: Text
    sets_hash: Text | None = None
    fit: Literal["crop", "pad", "stretch"] | None = None
    n_train: Count | None = None
    n_partial: Count | None = None
    n_test: Count | None = None
    evaluated_on: str | None = None


@dataclass(frozen=True)
class MetricsLine:
    """What every method's line has."""

    epoch: AtLeastOne
    step: Count
    seconds: float
    accuracy: float | None
    accuracy_best: float | None
    accuracy_momentum: float | None
    thresholds: list[float] | None


@dataclass(frozen=True)
class VerdictFile:
    """What `concont.training.pseudo_labels` says, of each class and at each recall."""

    pseudo_labels: list[Count]
    confident: list[Count]
    confident_right: list[Count] | None
    precision: dict[str, list[Share] | None]

    def __post_init__(self) -> None:
        counts = (self.pseudo_labels, self.confident, self.confident_right)
        if len({len(each) for each in counts if each is not None}) > 1:
            raise ValueError("it counts more classes in one place than in another")


@dataclass(frozen=True)
class EnvironmentFile:
    """Where the last start of a run ran, and the earlier ones."""

    earlier: list[dict[str, Any]] = field(default_factory=list)


def name_cure(name: str) -> str:
    """What to do about a damaged file of this name."""
    return CURES.get(name, START_AFRESH)


def check_data(text: str) -> None:
    """A DataError says in a few words what the file's text lacks; further names are left alone."""
    _check(DataFile, text)


def check_environment(text: str) -> None:
    """The same of `environment.json`."""
    _check(EnvironmentFile, text)


def check_verdict(text: str) -> None:
    """The same of `verdict.json`."""
    _check(VerdictFile, text)


def check_line(text: str) -> None:
    """The same of a line of metrics."""
    _check(MetricsLine, text)


def _check(kind: type, text: str) -> None:
    try:
        checker(kind).validate_json(text, strict=True)
    except ValueError as error:  # pydantic's
        raise DataError(name_first_problem(error)) from None
