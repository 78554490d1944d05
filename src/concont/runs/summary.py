"""What `summary.json` holds: which run it was, and what came of it."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Self

from annotated_types import MinLen

from concont.errors import DataError
from concont.types import AtLeastOne, NonNegative, Seed, Share

if TYPE_CHECKING:
    from pydantic import TypeAdapter

Text = Annotated[str, MinLen(1)]


@dataclass(frozen=True, kw_only=True)
class Summary(Mapping[str, Any]):
    """A finished run: its settings in short, and its result; also read like `summary.json`.

    A field with a default is newer than the first runs, or not every method's.
    """

    method: Text
    recipe: Text
    data: Text  # a name, or the digest of what has none
    labeled: float | None
    ambiguity: float | None
    unlabeled: bool
    seed: Seed
    data_seed: Seed | None = None
    settings_hash: Text
    evaluated_on: str | None = None  # "test", "holdout", "sets", or None: nothing to measure on
    accuracy_last: Share | None
    accuracy_best: Share | None
    accuracy_momentum: Share | None = None  # of the key network
    # Of held-out images of which sets alone are known, at the last epoch: the mean probability on
    # the set, and the share whose likeliest class is in it.
    probability_on_sets: Share | None = None
    share_in_sets: Share | None = None
    epochs: AtLeastOne | None  # None: of a method that has none
    steps: AtLeastOne | None = None
    batch_size: AtLeastOne | None = None
    seconds: NonNegative
    seconds_by: dict[str, NonNegative] | None = None  # what they went to
    details: Mapping[str, Any] = field(default_factory=dict)  # what else the kind of run tells

    @classmethod
    def names(cls) -> set[str]:
        """What it is made of, the details apart."""
        return {each.name for each in fields(cls)} - {"details"}

    @classmethod
    def from_dict(cls, content: Any) -> Self:
        """Checked, from what `as_dict` gave; keys of another version are among the details."""
        if not isinstance(content, Mapping):
            raise DataError("it holds no names with values")
        known = cls.names()
        own = {name: value for name, value in content.items() if name in known}
        rest = {name: value for name, value in content.items() if name not in known}
        text = json.dumps({**own, "details": rest})  # JSON, so that a list may be a tuple
        kind: type = cls
        try:
            checked: Self = checker(kind).validate_json(text, strict=True)
        except ValueError as error:  # pydantic's
            raise DataError(name_first_problem(error)) from None
        return checked

    def as_dict(self) -> dict[str, Any]:
        """Plain values, the details beside the rest."""
        own = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: value for name, value in own.items() if name != "details"} | {**self.details}

    def __getitem__(self, name: str) -> Any:
        """A value by its name in `summary.json`."""
        return getattr(self, name) if name in self.names() else self.details[name]

    def __iter__(self) -> Iterator[str]:
        """The names in `summary.json`."""
        return iter(self.as_dict())

    def __len__(self) -> int:
        """How many there are."""
        return len(self.as_dict())


@cache
def checker(kind: type) -> "TypeAdapter[Any]":
    """What checks that values are those of a record."""
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def name_first_problem(error: Any) -> str:
    """What is wrong first, in words, of what pydantic found."""
    found = error.errors()[0]
    where = ".".join(map(str, found["loc"]))
    if found["type"] == "missing":
        return f"it has no {where}"
    return f"{where}: {found['msg']}" if where else str(found["msg"])
