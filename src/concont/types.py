"""The records that cross layers and the contract of a method.

Shape letters, everywhere: B batch, C classes, D embedding, K keys, N training rows, H W image.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Protocol, runtime_checkable

from annotated_types import Ge, Gt, Le, Lt

if TYPE_CHECKING:
    from torch import Tensor, nn

LARGEST = 1e15  # of a number in a setting: the product of two is still one in float32
NonNegative = Annotated[float, Ge(0), Le(LARGEST)]
Positive = Annotated[float, Gt(0), Le(LARGEST)]
Seed = Annotated[int, Ge(-(2**63)), Lt(2**63)]
Count = Annotated[int, Ge(0)]
AtLeastOne = Annotated[int, Ge(1)]
# What no machine of today would hold more of: a slip of the finger, told before it is tried.
Width = Annotated[int, Ge(1), Le(2**16)]  # numbers in a layer of a network
Side = Annotated[int, Ge(1), Le(2**13)]  # pixels of an image
Slots = Annotated[int, Ge(0), Le(2**26)]  # keys of a queue
Share = Annotated[float, Ge(0), Le(1)]
Trust = Annotated[float, Gt(0), Le(1)]
Fraction = Annotated[float, Ge(0), Lt(1)]
State = dict[str, "Tensor"]
Plain = dict[str, Any]  # settings as YAML holds them
SECTIONS = ("data", "views", "model", "method", "optimizer", "train")  # as data flows


class _Nonzero:
    """Every number but 0, as a set."""

    def __contains__(self, value: object) -> bool:
        return value != 0


class _Given:
    """Every value but None, as a set."""

    def __contains__(self, value: object) -> bool:
        return value is not None


NONZERO, GIVEN = _Nonzero(), _Given()


def setting(
    default: Any, *, only_with: Mapping[str, Any] | None = None, shared: bool = False
) -> Any:
    """A field of settings that has more to say than its type and its default.

    only_with: values of other fields, a tuple or `NONZERO` or `GIVEN` for several, without which
    it has no effect. It is then refused, and no part of what identifies a result. shared: a
    recipe's value holds for every method that has this field, not only for the one that the recipe
    was written for.
    """
    known = {"only_with": only_with or {}, "shared": shared}
    return field(default=default, metadata=known)


def find_unused(kind: type, values: Mapping[str, Any]) -> dict[str, str]:
    """The fields of a section without effect, and with which other field's value they have none.

    values: those of the section; what is not among them has its default.
    """
    known = {each.name: values.get(each.name, each.default) for each in fields(kind)}
    found = {}
    for each in fields(kind):
        for other, wanted in each.metadata.get("only_with", {}).items():
            several = isinstance(wanted, tuple | _Nonzero | _Given)
            if known[other] not in (wanted if several else (wanted,)):
                found[each.name] = other
    return found


@dataclass(frozen=True)
class Batch:
    """What one step learns from: rows of the training set and their views."""

    index: "Tensor"  # (B,) rows of the training set
    candidates: "Tensor"  # (B, C) bool; all True where the row is unlabelled
    views: Mapping[str, "Tensor"]  # name -> (B, channels, H, W) in [0, 1]
    truth: "Tensor"  # (B,) true labels, -1 unknown; for logging and for bounds that declare it
    epoch: "Tensor"  # () which one this is, from 0
    epochs: "Tensor"  # () of the whole run
    n_partial: int | None = None  # every partial row is among the first so many; None: anywhere
    weights: "Tensor | None" = None  # (B, C) of the candidates: `core.evidence`; None: all alike


@dataclass(frozen=True)
class StepOut:
    """What a method makes of a batch; nothing in it has been written anywhere yet."""

    total: "Tensor"  # () the loss that is minimised
    terms: Mapping[str, "Tensor"] = field(default_factory=dict)  # unweighted, detached
    metrics: Mapping[str, tuple["Tensor", "Tensor"]] = field(default_factory=dict)  # sum, count
    to_commit: Mapping[str, "Tensor"] = field(default_factory=dict)  # what `commit` stores


class Net(Protocol):
    """A network in three parts, so that a method runs only the parts it needs."""

    def features(self, *views: "Tensor") -> tuple["Tensor", ...]:
        """Features of each view; all of them pass as one batch."""
        ...

    def logits(self, features: "Tensor") -> "Tensor":
        """Class scores (B, C), float32."""
        ...

    def embed(self, features: "Tensor") -> "Tensor":
        """Unit rows (B, D), float32."""
        ...


@dataclass(frozen=True)
class Nets:
    """The online network and its running average (the online one where a method has none)."""

    online: "Net"
    key: "Net"

    @property
    def modules(self) -> dict[str, "nn.Module"]:
        """The distinct modules by name, for saving and moving."""
        found: dict[str, nn.Module] = {"online": self.online}  # type: ignore[dict-item]
        if self.key is not self.online:
            found["key"] = self.key  # type: ignore[assignment]
        return found


class Verdict(Protocol):
    """What a method holds of N rows: their pseudo-labels, and of which it is confident."""

    @property
    def label(self) -> "Tensor":
        """Pseudo-labels (N,)."""
        ...

    @property
    def score(self) -> "Tensor":
        """How sure it is of each (N,)."""
        ...

    @property
    def confident(self) -> "Tensor":
        """Whether that is enough (N,) bool."""
        ...

    @property
    def probs(self) -> "Tensor":
        """The probabilities (N, C) that were judged."""
        ...


class MethodDefaults:
    """The answers of a method that has nothing of its own to say; a base for every method."""

    # What it asks for on a recipe, by the recipe's name, and on all that extend it.
    brings: ClassVar[Plain] = {}
    trainer: ClassVar[str] = "network"
    sections: ClassVar[tuple[str, ...]] = SECTIONS
    key_views: tuple[str, ...] = ()
    partial_rows_first: bool = False
    wants_unlabeled: bool = False
    reads_truth: bool = False
    fully_supervised: bool = False

    def key_momentum(self, step: "Tensor") -> "float | Tensor | None":
        """There is no key network."""
        return None

    def init_state(self, candidates: "Tensor", dim: int) -> State:
        """Nothing outlives a step."""
        return {}

    def commit(self, nets: Nets, state: State, batch: Batch, out: StepOut) -> None:
        """Nothing to store."""

    def thresholds(self, state: State) -> "Tensor | None":
        """There are none."""
        return None

    def judge(
        self,
        probs: "Tensor",
        candidates: "Tensor",
        state: State,
        weights: "Tensor | None" = None,
    ) -> Verdict | None:
        """It has no opinion."""
        return None

    def overruled(self, candidates: "Tensor", state: State) -> "Tensor | None":
        """It believes every set."""
        return None


class Named(Protocol):
    """What every method has, with a network or without: a frozen dataclass of its settings."""

    @property
    def name(self) -> str:
        """What `--method` calls it."""
        ...

    @property
    def trainer(self) -> str:
        """How it is trained: a name in `training.trainers`."""
        ...

    @property
    def sections(self) -> tuple[str, ...]:
        """The sections of settings that its result depends on; with `train`, it has epochs."""
        ...

    @property
    def wants_unlabeled(self) -> bool:
        """Whether it is meant to see images without labels, unless the user says otherwise."""
        ...

    @property
    def reads_truth(self) -> bool:
        """Whether it learns from true labels, and so needs that of every training image."""
        ...

    @property
    def fully_supervised(self) -> bool:
        """Whether it is the bound that sees every image with its label, whatever sets are asked."""
        ...


@runtime_checkable
class Method(Named, Protocol):
    """A frozen dataclass of hyper-parameters that turns a batch into a loss."""

    @property
    def views(self) -> tuple[str, ...]:
        """Names of the views that a batch must hold."""
        ...

    @property
    def key_views(self) -> tuple[str, ...]:
        """Those of the views that no other network than the key network sees."""
        ...

    @property
    def partial_rows_first(self) -> bool:
        """Whether each batch is to begin with its partial rows, and say how many: `n_partial`."""
        ...

    def key_momentum(self, step: "Tensor") -> "float | Tensor | None":
        """How slowly the key network follows the online one; None, always, without a key network.

        step () counts the steps before this one, on the device.
        """
        ...

    def init_state(self, candidates: "Tensor", dim: int) -> State:
        """Everything that outlives a step, flat, so that saving it needs no knowledge of it.

        candidates (N, C) bool of all rows; dim: D of the embedding.
        """
        ...

    def losses(self, nets: Nets, state: State, batch: Batch) -> StepOut:
        """The loss of a batch; reads `state`, writes nothing."""
        ...

    def commit(self, nets: Nets, state: State, batch: Batch, out: StepOut) -> None:
        """Write what is to be kept into `state`, in place, after the optimiser's step."""
        ...

    def thresholds(self, state: State) -> "Tensor | None":
        """The score (C,) from which on a pseudo-label of each class is confident; for the log."""
        ...

    def judge(
        self,
        probs: "Tensor",
        candidates: "Tensor",
        state: State,
        weights: "Tensor | None" = None,
    ) -> Verdict | None:
        """What it holds of rows with these probabilities and candidate sets (N, C), both.

        weights (N, C): of the candidates, where votes were counted. Asked at the end of a run of
        all its training rows, of a method that has thresholds.
        """
        ...

    def overruled(self, candidates: "Tensor", state: State) -> "Tensor | None":
        """Training rows (N,) whose sets (N, C) it believes no more at a run's end; None: none."""
        ...
