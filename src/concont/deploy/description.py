"""What an exported file says of itself: short texts by name, checked when they are read back."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from concont.errors import DataError
from concont.images.files import Fit

# What goes in, one of the first two, and what comes out.
IMAGES, FEATURES, LOGITS, PROBABILITIES = "images", "features", "logits", "probabilities"
FITS = Fit.__args__  # type: ignore[attr-defined]
LARGEST_SIDE = 2**14  # pixels
MOST_FEATURES = 2**24


@dataclass(frozen=True)
class Description:
    """What whoever uses the file must know, and where it comes from."""

    classes: tuple[str, ...]  # in the order of the outputs
    height: int | None  # None: it takes rows of features
    width: int | None
    channels: int | None  # 1 grey, 3 RGB
    fit: Fit  # how an image file is given that size
    normalisation: Mapping[str, list[float]]  # mean and std of each channel; inside the model
    model: Mapping[str, Any]  # settings of the network
    concont: str  # the version that exported it
    commit: str | None
    settings_hash: str
    data_digest: str
    licence: str | None
    features: int | None = None  # in a row; None: it takes images

    @property
    def shape(self) -> tuple[int, ...]:
        """Of an input: (H, W, channels) of an image, or (D,) of a row of features."""
        if self.features is not None:
            return (self.features,)
        return tuple(side for side in (self.height, self.width, self.channels) if side is not None)

    @property
    def goes_in(self) -> str:
        """What the file calls its inputs."""
        return IMAGES if self.features is None else FEATURES

    def as_texts(self) -> dict[str, str]:
        """JSON by name: what all three formats can carry."""
        said = {each.name: getattr(self, each.name) for each in fields(self)}
        if self.features is None:
            del said["features"]  # files of images say nothing of them
        return {name: json.dumps(value, ensure_ascii=False) for name, value in said.items()}


def read_description(texts: Mapping[str, str], where: str) -> Description:
    """What `as_texts` wrote; `where` names the file in an error."""
    names = [each.name for each in fields(Description) if each.name in texts]
    missing = [each.name for each in fields(Description) if each.name not in (*names, "features")]
    if missing:
        raise DataError(f"{where} says nothing of its {missing[0]}; is it from `concont export`?")
    try:
        values = {name: json.loads(texts[name]) for name in names}
    except (ValueError, RecursionError):
        raise DataError(f"{where}: what it says of itself is damaged") from None
    of_features = values.get("features") is not None
    for name, is_right in (RULES | (OF_FEATURES if of_features else {})).items():
        if not is_right(values.get(name)):
            raise DataError(f"{where}: its {name} cannot be what it says")
    return Description(**{**values, "classes": tuple(values["classes"])})


def _is_text(value: Any) -> bool:
    """Whether it is text that can be written: JSON may hold halves of letters."""
    return isinstance(value, str) and not any("\ud800" <= letter <= "\udfff" for letter in value)


def _is_text_or_none(value: Any) -> bool:
    return value is None or _is_text(value)


def _is_side(value: Any) -> bool:
    return type(value) is int and 1 <= value <= LARGEST_SIDE


def _are_classes(value: Any) -> bool:
    return isinstance(value, list) and len(value) > 1 and all(map(_is_text, value))


RULES = {
    "classes": _are_classes,
    "height": _is_side,
    "width": _is_side,
    "channels": lambda value: value in (1, 3),
    "fit": lambda value: value in FITS,
    "normalisation": lambda value: isinstance(value, dict),
    "model": lambda value: isinstance(value, dict),
    "concont": _is_text,
    "commit": _is_text_or_none,
    "settings_hash": _is_text,
    "data_digest": _is_text,
    "licence": _is_text_or_none,
}
OF_FEATURES = {
    **dict.fromkeys(("height", "width", "channels"), lambda value: value is None),
    "features": lambda value: type(value) is int and 1 <= value <= MOST_FEATURES,
}
