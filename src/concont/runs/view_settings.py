"""The settings of the random views, those that have a name, and those without effect."""

from dataclasses import dataclass, fields
from typing import Annotated, Literal

from annotated_types import Ge, Le

from concont.types import Count, Fraction, NonNegative, Share

Operation = Literal[
    "identity",
    "autocontrast",
    "equalize",
    "rotate",
    "posterize",
    "solarize",
    "color",
    "contrast",
    "brightness",
    "sharpness",
    "shear_x",
    "shear_y",
    "translate_x",
    "translate_y",
    "invert",
]
Span = tuple[NonNegative, NonNegative]
Jitter = tuple[NonNegative, NonNegative, NonNegative, NonNegative]


@dataclass(frozen=True)
class View:
    """One kind of random view.

    Of an image: a crop, colours, operations of RandAugment or a policy, a hole. Of a row of
    features: noise, and features that are masked.
    """

    crop: Span = (1.0, 1.0)  # area kept by the random resized crop
    ratio: Span = (3 / 4, 4 / 3)  # width : height of the crop
    operations: tuple[Operation, ...] = ()  # of RandAugment, to draw from
    draws: Annotated[int, Ge(0), Le(100)] = 0  # operations an image, with replacement
    rotate: NonNegative = 30.0  # degrees, either way
    shear: NonNegative = 0.3  # at most, either way
    translate: Share = 0.3  # of the size
    enhance: Span = (0.1, 1.9)  # factor of color, contrast, brightness, sharpness
    posterize: Span = (4.0, 8.0)  # bits kept
    solarize: Span = (0.0, 256.0)  # values from here on are turned over
    # side of the grey square: up to 1 a share of the shorter side, above 1 in pixels
    cutout: Span = (0.0, 0.0)
    # instead of a crop: moved by up to so many pixels, or such a share; the border is reflected
    pad: Count | Fraction = 0
    jitter: Jitter = (0.0, 0.0, 0.0, 0.0)  # of brightness, contrast, saturation; hue in turns
    jitter_chance: Share = 0.8  # of the images that get jitter
    grey_chance: Share = 0.0  # of the images that lose their colour
    policy: Literal["random", "cifar10", "svhn"] = "random"  # AutoAugment's, for `operations`
    noise: NonNegative = 0.0  # of features: its standard deviation, as a share of the feature's own
    masked: Share = 0.0  # of features: the chance that one is replaced by its mean

    def __post_init__(self) -> None:
        for name in ("crop", "ratio", "enhance", "posterize", "solarize", "cutout"):
            low, high = getattr(self, name)
            if low > high:
                raise ValueError(f"{name} is {low:g} to {high:g}; give the smaller first")
        if not 0 < self.crop[0] <= self.crop[1] <= 1:
            raise ValueError(f"crop is {self.crop}; it must be two shares above 0 and up to 1")
        if self.ratio[0] <= 0:
            raise ValueError(f"ratio is {self.ratio}; it must be above 0")
        if 0 < self.cutout[0] <= 1 < self.cutout[1]:
            raise ValueError(f"cutout is {self.cutout}; give two shares up to 1, or two in pixels")
        if self.draws and not self.operations:
            raise ValueError("draws needs a list of operations to draw from")
        self._refuse_both()

    def pad_in_pixels(self, side: int) -> int:
        """How far an image whose shorter side has so many pixels may move."""
        return self.pad if isinstance(self.pad, int) else round(self.pad * side)

    def cutout_in_pixels(self, side: int) -> Span:
        """The side of the grey square in an image whose shorter side has so many pixels."""
        low, high = self.cutout
        return (low * side, high * side) if high <= 1 else (low, high)

    def _refuse_both(self) -> None:
        if self.pad and self.crop != (1, 1):
            raise ValueError(f"pad is {self.pad}, which needs a crop of 1 to 1, not {self.crop}")
        if self.policy != "random" and (self.operations or self.draws):
            raise ValueError(f"policy {self.policy} has operations of its own; give none, no draws")
        if self.jitter[3] > 0.5:
            raise ValueError(f"jitter of the hue is {self.jitter[3]:g}; it must be up to 0.5 turns")


# RandAugment's 14, which are all but `invert`.
ALL_OPERATIONS: tuple[Operation, ...] = Operation.__args__[:-1]  # type: ignore[attr-defined]

# Views by name: `views.strong: pico` stands for all of its values.
WEAK_VARIANTS = {
    "pico": View(crop=(0.2, 1.0), jitter=(0.4, 0.4, 0.4, 0.1), grey_chance=0.2),
    "pad4": View(pad=4),
}
STRONG_VARIANTS = {
    "measured": View(crop=(0.2, 1.0), operations=ALL_OPERATIONS, draws=2, cutout=(16.0, 16.0)),
    "pico": View(
        crop=(0.2, 1.0),
        operations=ALL_OPERATIONS,
        draws=3,
        enhance=(0.05, 0.95),
        cutout=(0.0, 16.0),
    ),
}
POLICY_VARIANTS = {
    "dpll": View(pad=4, policy="cifar10", cutout=(16.0, 16.0)),
    "dpll-svhn": View(ratio=(1.0, 1.0), policy="svhn", cutout=(20.0, 20.0)),  # without flip
}
NAMED_VIEWS = {"weak": WEAK_VARIANTS, "strong": STRONG_VARIANTS | POLICY_VARIANTS}


@dataclass(frozen=True)
class Views:
    """The weak and the strong view; `flip` holds for both."""

    flip: bool = True  # mirror with probability 1/2
    weak: View = View(crop=(0.5, 1.0))
    strong: View = STRONG_VARIANTS["measured"]


OF_FEATURES = ("noise", "masked")


def list_idle(of_features: bool) -> list[tuple[str, ...]]:
    """The settings of the views that have no effect on features, or none on images."""
    names = [each.name for each in fields(View) if (each.name in OF_FEATURES) != of_features]
    idle: list[tuple[str, ...]] = [(kind, name) for kind in NAMED_VIEWS for name in names]
    return [("flip",), *idle] if of_features else idle
