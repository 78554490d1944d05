"""The settings of the systems without a network, as `--method sspl` and `parm` take them."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from annotated_types import Ge, MultipleOf

from concont.types import AtLeastOne, NonNegative, Positive, Share

if TYPE_CHECKING:
    from concont.classic.estimator import CandidateClassifier

Neighbours = Annotated[int, Ge(2)]
Side = Annotated[int, Ge(4), MultipleOf(4)]


@dataclass(frozen=True)
class Classic:
    """What both have: they learn from unlabelled rows too, and never from true labels."""

    name: str
    size: Side  # of the images that GIST sees

    wants_unlabeled = True
    reads_truth = False


@dataclass(frozen=True)
class Sspl(Classic):
    """See `concont.SSPLClassifier`."""

    name: Literal["sspl"] = "sspl"
    size: Side = 32  # of the images that GIST sees
    k: Neighbours = 10  # neighbours of a row
    alpha: Share = 0.7  # how far labels go from partial rows in a round
    beta: Share = 0.25  # the same from unlabelled rows
    r: Share = 0.7  # the partial neighbours' part in a prediction
    rounds: AtLeastOne = 100  # of spreading, at most
    tolerance: NonNegative = 1e-4  # a change of all labels at which rounds end


@dataclass(frozen=True)
class Parm(Classic):
    """See `concont.PARMClassifier`; `lam` and `mu` are numbers, or `cv` to search."""

    name: Literal["parm"] = "parm"
    size: Side = 32  # of the images that GIST sees
    lam: Positive | Literal["cv"] = 1.0  # what partial rows count
    mu: Positive | Literal["cv"] = 1.0  # what unlabelled rows count
    k: AtLeastOne = 8  # neighbours of a row
    alpha: Share = 0.95  # the neighbours' part in a row's label
    gamma: Positive = 0.01  # how firmly soft labels are tied to those of neighbours
    rounds: AtLeastOne = 5  # of machine and soft labels in turn
    tolerance: Positive = 1e-3  # a machine's gap, as a share of its gain
    max_steps: AtLeastOne = 1000  # of a machine


CLASSICS: dict[str, type[Classic]] = {"sspl": Sspl, "parm": Parm}


def classifier(options: Classic, device: str, seed: int) -> "CandidateClassifier":
    """The classifier that the settings describe."""
    from concont.classic.parm import PARMClassifier
    from concont.classic.sspl import SSPLClassifier

    given = {k: v for k, v in asdict(options).items() if k not in ("name", "size")}
    if isinstance(options, Parm):
        return PARMClassifier(**given, device=device, random_state=seed)
    make: Callable[..., CandidateClassifier] = SSPLClassifier
    return make(**given, device=device)
