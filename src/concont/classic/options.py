"""The settings of the systems without a network, as `--method sspl` and `parm` take them."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from annotated_types import Ge, MultipleOf

from concont.types import AtLeastOne, NonNegative, Plain, Positive, Share

if TYPE_CHECKING:
    from concont.classic.estimator import CandidateClassifier

Neighbours = Annotated[int, Ge(2)]
Side = Annotated[int, Ge(4), MultipleOf(4)]


@dataclass(frozen=True)
class Classic:
    """What both have: they learn from unlabelled rows too, and never from true labels."""

    name: str
    size: Side  # of the images that GIST sees

    brings: ClassVar[Plain] = {}
    wants_unlabeled = True
    reads_truth = False
    fully_supervised = False


@dataclass(frozen=True)
class Sspl(Classic):
    """See `concont.SSPLClassifier`."""

    name: Literal["sspl"] = "sspl"
    size: Side = 32  # of the images that GIST sees
    k: Neighbours = 10
    alpha: Share = 0.7
    beta: Share = 0.25
    r: Share = 0.7
    rounds: AtLeastOne = 100
    tolerance: NonNegative = 1e-4


@dataclass(frozen=True)
class Parm(Classic):
    """See `concont.PARMClassifier`; `lam` and `mu` are numbers, or `cv` to search."""

    name: Literal["parm"] = "parm"
    size: Side = 32  # of the images that GIST sees
    lam: Positive | Literal["cv"] = 1.0
    mu: Positive | Literal["cv"] = 1.0
    k: AtLeastOne = 8
    alpha: Share = 0.95
    gamma: Positive = 0.01
    rounds: AtLeastOne = 5
    tolerance: Positive = 1e-3
    max_steps: AtLeastOne = 1000


# By name, as `--method` takes it: every one of the above.
CLASSICS: dict[str, type[Classic]] = {vars(kind)["name"]: kind for kind in Classic.__subclasses__()}


def classifier(options: Classic, device: str, seed: int) -> "CandidateClassifier":
    """The classifier that the settings describe."""
    from concont.classic.parm import PARMClassifier
    from concont.classic.sspl import SSPLClassifier

    given = {k: v for k, v in asdict(options).items() if k not in ("name", "size")}
    if isinstance(options, Parm):
        return PARMClassifier(**given, device=device, random_state=seed)
    make: Callable[..., CandidateClassifier] = SSPLClassifier
    return make(**given, device=device)
