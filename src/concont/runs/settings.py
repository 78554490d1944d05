"""Every setting of a run but the method's own, as frozen records; YAML and hash of the whole."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import PurePath
from typing import Annotated, Any, Literal

from annotated_types import Gt, Le

from concont.errors import UsageError
from concont.runs.model_settings import Model
from concont.runs.view_settings import Views, list_idle
from concont.types import (
    GIVEN,
    SECTIONS,
    AtLeastOne,
    Count,
    Fraction,
    Method,
    Named,
    NonNegative,
    Plain,
    Positive,
    Seed,
    Share,
    Side,
    find_unused,
    setting,
)

Wait = Annotated[float, Gt(0), Le(1e6)]  # seconds, up to eleven days
# Of the training: where and how, not what.
NO_EFFECT_ON_RESULT = ("device", "compile", "checkpoint_every", "memory_share", "rank_timeout")
# Of the data: where it lies, and how it is read; the digest of what was read says what it is.
DATA_PATHS = ("root", "images", "unlabeled_images", "votes")
HOW_READ = ("min_votes", "image_size", "fit")
NOT_RUN = "is code of your own, which is run only if you name it: --method"
# Settings that came after the first records: with these values hashes are what they were.
LATER: dict[str, Plain] = {
    "data": {"noise": 0.0},
    "model": {"stem": "auto", "weights": None, "start": None, "own": None},
    "method": {"trust": 1.0, "vote_strength": 1.0, "vote_strength_end": None, "part_blend": 0.0},
    "optimizer": {"backbone_rate": 1.0},
    "train": {"skip_nonfinite": 0, "sync_batchnorm": True},
}
NAMED_SOURCES = ("digits", "cifar10", "cifar100", "svhn", "fashion-mnist")


@dataclass(frozen=True)
class Data:
    """Which images, and which of them keep which candidate set."""

    source: str = ""  # a name of `concont datasets`, a file, or a folder of images
    root: str | None = None  # folder of named sources
    images: str | None = None  # folder of a table's images; None: the table's own
    unlabeled_images: str | None = None  # folder of further images, without labels
    votes: str | None = None  # file of the annotators' votes on the images of the folder `source`
    min_votes: AtLeastOne = setting(1, only_with={"votes": GIVEN})  # to make a class a candidate
    image_size: Side | None = None  # side of images read from files; None: as they are, to 64
    fit: Literal["crop", "pad", "stretch"] = "crop"  # how such an image is made square
    labeled: float | None = None  # share up to 1, or a count from 2 on; None: all that are known
    ambiguity: Fraction | None = None  # q: chance that a wrong label joins the set; None: 0
    unlabeled: bool | None = None  # keep the other images, without labels; None: the method's way
    seed: Seed = 1  # of split and candidate sets
    # draw the labelled images class by class
    stratified: bool = setting(False, only_with={"labeled": GIVEN})
    at_least_two: bool = False  # no set of a single label (PRODEN's and DPLL's way)
    noise: Fraction = 0.0  # chance that a wrong label takes the true one's place in its set
    holdout: Fraction = 0.0  # share of the training images to evaluate on instead of the test set
    candidates: str | None = None  # file of `concont data candidates`, instead of drawing sets

    def __post_init__(self) -> None:
        count = self.labeled
        if count is not None and not (0 < count <= 1 or (count >= 2 and float(count).is_integer())):
            allowed = "a share above 0 and up to 1, or a whole number from 2 on"
            raise ValueError(f"labeled is {count:g}; it must be {allowed}")


@dataclass(frozen=True)
class Optimizer:
    """Stochastic gradient descent; its rate follows a schedule over the run.

    cosine: to 0; steps: a tenth at a half and at three quarters; halving: five times, smoothly.
    """

    lr: Positive = 0.01  # learning rate at the start, or after the warm-up
    momentum: Fraction = 0.9  # of the gradient's running mean
    weight_decay: NonNegative = 1e-3  # on all weights
    nesterov: bool = False  # look ahead along the momentum
    schedule: Literal["cosine", "steps", "halving", "constant"] = "cosine"  # of the rate, as above
    warmup: Fraction = 0.0  # share of the run over which the rate rises from 0
    backbone_rate: NonNegative = 1.0  # of the backbone, as a multiple of `lr`; 0: it stays as it is

    def __post_init__(self) -> None:
        if self.nesterov and self.momentum == 0:
            raise ValueError("nesterov needs a momentum above 0")


@dataclass(frozen=True)
class Train:
    """Length, batches, and what is written when."""

    epochs: AtLeastOne = 800  # passes over the training rows
    batch_size: AtLeastOne = 256  # rows of a step
    partial_share: Share | None = None  # of each batch; None: one shuffle of all rows
    seed: Seed = 1  # of weights, order and views
    evaluate_every: AtLeastOne = 1  # epochs
    checkpoint_every: NonNegative = 60.0  # seconds; 0: at every epoch's end
    memory_share: Share = 0.5  # of the free device memory for the images; beyond it they stream
    device: Literal["auto", "cpu", "cuda"] = "auto"  # auto: a GPU where there is one
    compile: bool | None = None  # None: on a GPU only
    deterministic: bool = False  # refuse operations that are not
    skip_nonfinite: Count = 0  # steps in a row left out for gradients that are not finite; slower
    sync_batchnorm: bool = True  # of several ranks: statistics of the whole batch, not of a part
    rank_timeout: Wait = 600.0  # seconds that one rank waits for another


@dataclass(frozen=True)
class MethodSource:
    """Where the code of a method of the user's own lies, and which code that is."""

    reference: str  # /path/to/file.py:Class, or package.module:Class
    digest: str  # of the file's content


def code_name(reference: str) -> str:
    """The same without the folders of a file: what a record calls it."""
    place, _, name = reference.rpartition(":")
    return f"{PurePath(place).name if place.endswith('.py') else place}:{name}"


@dataclass(frozen=True)
class UnloadedMethod:
    """A method of the user's own as a run folder or record names it: its code is not run.

    Enough to read, evaluate and compare its runs; to train, the user must name its code.
    """

    name: str  # file.py:Class
    values: Mapping[str, Any]  # its settings

    trainer = "network"
    sections = SECTIONS
    wants_unlabeled = False
    reads_truth = False
    fully_supervised = False


def forget(plain: Plain, path: tuple[str, ...]) -> None:
    """Take one value out of nested settings, where it is in them; what is no section stays."""
    *sections, name = path
    for section in sections:
        inner = plain.get(section)
        if not isinstance(inner, dict):  # nothing, or what is refused later
            return
        plain = inner
    plain.pop(name, None)


def _without(section: Plain, usual: Plain) -> Plain:
    return {k: value for k, value in section.items() if k not in usual or usual[k] != value}


def _leave_out_folders(plain: Plain, own_method: str | None) -> None:
    """Of code of the user's own the file's name alone, whose digest stands beside it."""
    if own_method is not None:
        plain["method"]["name"] = code_name(own_method)
    if "own" in plain["model"]:
        plain["model"]["own"] = code_name(plain["model"]["own"])


@dataclass(frozen=True)
class Settings:
    """All of a run's settings; what `config.yaml` holds."""

    method: Named
    data: Data = field(default_factory=Data)
    views: Views = field(default_factory=Views)
    model: Model = field(default_factory=Model)
    optimizer: Optimizer = field(default_factory=Optimizer)
    train: Train = field(default_factory=Train)
    recipe: str = "default"
    method_source: MethodSource | None = None  # of a method that is not the package's

    @property
    def own_method(self) -> str | None:
        """FILE.py:Class of a method of the user's own, as `--method` takes it."""
        return None if self.method_source is None else self.method_source.reference

    @property
    def has_epochs(self) -> bool:
        """Whether its method is trained step by step."""
        return "train" in self.method.sections

    @property
    def network_method(self) -> Method:
        """The method as one that trains a network."""
        if isinstance(self.method, UnloadedMethod):
            raise UsageError(f"{self.method.name} {NOT_RUN} {self.own_method}")
        if not isinstance(self.method, Method):
            raise UsageError(f"{self.method.name} trains no network")
        return self.method

    def as_dict(self) -> Plain:
        """Plain values, sections in the order in which data flows."""
        plain = {name: asdict(getattr(self, name)) for name in SECTIONS}
        if self.method_source is not None:
            given = plain["method"].get("values", plain["method"])
            own = {name: value for name, value in given.items() if name != "name"}
            source = self.method_source
            plain["method"] = {"name": source.reference, "digest": source.digest, **own}
        found: Plain = json.loads(json.dumps({"recipe": self.recipe, **plain}))
        return found

    def hash(self, data_digest: str | None = None, sets_hash: str | None = None) -> str:
        """What a result is identified by: all settings that can change it, and no path.

        Data that has no name of its own is known by the digest of its content, a file of candidate
        sets by their hash, a method or a network of the user's own by name, file name and digest.
        """
        plain = self.as_dict()
        del plain["recipe"]
        for name in (*DATA_PATHS, *HOW_READ):
            del plain["data"][name]
        for path in self.list_unused():
            forget(plain, path)
        for name in self.model.files:
            plain["model"][name] = "file"  # whose digest stands beside it
        for section, usual in LATER.items():
            plain[section] = _without(plain[section], usual)
        if plain["data"]["source"] not in NAMED_SOURCES:
            plain["data"]["source"] = data_digest
        if plain["data"].pop("candidates") is not None:
            plain["data"]["candidates"] = sets_hash
        _leave_out_folders(plain, self.own_method)
        plain = {name: plain[name] for name in self.method.sections}
        return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:16]

    def list_unused(self) -> Iterator[tuple[str, ...]]:
        """Where the settings lie that cannot change this run's result: section, then names."""
        for name in NO_EFFECT_ON_RESULT:
            yield "train", name
        # A record's own method is unloaded, so what it does not use is unknown: it has its default.
        sections = ("data", "model") if self.own_method is not None else ("data", "model", "method")
        for section in sections:
            kept = getattr(self, section)
            for name in find_unused(type(kept), vars(kept)):
                yield section, name
        for path in list_idle(self.model.of_features):
            yield "views", *path
        if isinstance(self.method, Method) and self.own_method is None:
            seen = " ".join(self.method.views)
            for kind in ("weak", "strong"):
                if kind not in seen:
                    yield "views", kind
