"""The settings of the network: which body, how wide, and what it starts from."""

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import PurePath
from typing import Annotated, Literal

from annotated_types import Ge, Le

from concont.types import GIVEN, Width, setting

RESNETS, NARROW = ("resnet18", "narrow-resnet18"), ("narrow-resnet18", "small")
OF_IMAGES, OF_FEATURES = (*RESNETS, "small"), "mlp"
NETWORKS, TIMM, PRETRAINED = (*OF_IMAGES, OF_FEATURES), "timm:", "pretrained"
Stem = Literal["auto", "whole", "half", "quarter"]
Depth = Annotated[int, Ge(1), Le(64)]
PICKLED = (".pth", ".pt", ".bin", ".ckpt", ".pkl", ".tar")


@dataclass(frozen=True)
class Model:
    """Backbone and heads."""

    # of images: resnet18, narrow-resnet18, small, or timm:NAME, a model of timm; of features: mlp
    name: str = "resnet18"
    # first layers keep the whole side, a half, a quarter; auto: whole to 48 px, half to 96
    stem: Stem = setting("auto", only_with={"name": OF_IMAGES})
    # channels of the first layer; of mlp: units of each layer
    width: Width = setting(32, only_with={"name": (*NARROW, OF_FEATURES)})
    depth: Depth = setting(2, only_with={"name": OF_FEATURES})  # layers of mlp
    init: Literal["he", "torch"] = setting("he", only_with={"name": RESNETS})  # PiCO's or PyTorch's
    hidden: Width = 512  # of the projection head
    embedding: Width = 64  # D
    # of a timm model: FILE.safetensors, `pretrained`; None: random
    weights: str | None = setting(None, only_with={"start": (None,)})
    # of the file, found
    weights_digest: str | None = setting(None, only_with={"weights": GIVEN, "start": (None,)})
    start: str | None = None  # the run, or its model.safetensors, whose weights are the first ones
    start_digest: str | None = setting(None, only_with={"start": GIVEN})  # of the file, found
    own: str | None = None  # FILE.py:make of a network of your own, in the place of all this
    own_digest: str | None = setting(None, only_with={"own": GIVEN})  # of the file, found

    def __post_init__(self) -> None:
        if not self.is_timm and self.name not in NETWORKS:
            close = get_close_matches(self.name, NETWORKS, n=1)
            meant = f"did you mean {close[0]}?" if close else "there are"
            known = f"{', '.join(NETWORKS)}, or {TIMM}NAME for a model of timm"
            raise ValueError(f"no network {self.name!r}; {meant} ({known})")
        if self.weights is not None:
            self._refuse_weights(self.weights)
        if self.start is not None and PurePath(self.start).suffix in PICKLED:
            raise ValueError(f"start is {self.start!r}; give a run, or its model.safetensors")

    @property
    def of_features(self) -> bool:
        """Whether it learns of rows of features, not of images."""
        return self.name == OF_FEATURES

    @property
    def is_timm(self) -> bool:
        """Whether the backbone is one of timm's."""
        return self.name.startswith(TIMM)

    @property
    def weights_file(self) -> str | None:
        """Where the weights lie, if they are a file."""
        return None if self.weights == PRETRAINED else self.weights

    @property
    def files(self) -> Mapping[str, str]:
        """The settings that name the file of the first weights, if there is one."""
        given = {"weights": self.weights_file} if self.start is None else {"start": self.start}
        return {name: path for name, path in given.items() if path is not None}

    def _refuse_weights(self, weights: str) -> None:
        suffix = PurePath(weights).suffix
        if not self.is_timm:
            raise ValueError(f"weights are for a {TIMM}NAME; {self.name} starts from random ones")
        if suffix in PICKLED:
            raise ValueError(
                f"weights is {weights!r}: to read such a file can run code; convert it once: "
                "safetensors.torch.save_file(torch.load(FILE, weights_only=True), "
                "'FILE.safetensors')"
            )
        if weights != PRETRAINED and suffix != ".safetensors":
            raise ValueError(f"weights is {weights!r}; give a FILE.safetensors, or `{PRETRAINED}`")
