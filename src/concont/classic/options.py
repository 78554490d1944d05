"""The settings of the systems without a network, as `--method sspl` and `parm` take them."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from annotated_types import Ge, Le, MultipleOf

from concont.types import AtLeastOne, NonNegative, Plain, Positive, Share

if TYPE_CHECKING:
    from concont.classic.estimator import CandidateClassifier

Neighbours = Annotated[int, Ge(2)]
Side = Annotated[int, Ge(4), Le(2**12), MultipleOf(4)]


@dataclass(frozen=True)
class Classic:
    """What both have: they learn from unlabelled rows too, and never from true labels."""

    name: str
    size: Side  # of the images that GIST sees

    brings: ClassVar[Plain] = {}
    trainer = "classic"
    sections = ("data", "method")
    wants_unlabeled = True
    reads_truth = False
    fully_supervised = False
    learned: ClassVar[tuple[str, ...]]  # arrays that a prediction cannot do without

    @property
    def fewest_partial(self) -> int:
        """Rows with a candidate set that a fit needs."""
        return 1

    def make_classifier(self, device: str, seed: int) -> "CandidateClassifier":
        """The classifier that the settings describe."""
        raise NotImplementedError

    def _own(self) -> dict[str, Any]:
        """The settings that are the classifier's."""
        return {name: value for name, value in asdict(self).items() if name not in ("name", "size")}


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

    learned = ("classes_", "n_features_in_", "_rows", "_label", "_partial")

    def make_classifier(self, device: str, seed: int) -> "CandidateClassifier":
        """The classifier that the settings describe; it draws nothing, so it has no seed."""
        from concont.classic.sspl import SSPLClassifier

        made: CandidateClassifier = SSPLClassifier(**self._own(), device=device)
        return made


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

    learned = ("classes_", "n_features_in_", "coef_")

    @property
    def fewest_partial(self) -> int:
        """A search holds one of them against the other."""
        return 2 if "cv" in (self.lam, self.mu) else 1

    def make_classifier(self, device: str, seed: int) -> "CandidateClassifier":
        """The classifier that the settings describe."""
        from concont.classic.parm import PARMClassifier

        return PARMClassifier(**self._own(), device=device, random_state=seed)


# By name, as `--method` takes it: every one of the above.
CLASSICS: dict[str, type[Classic]] = {vars(kind)["name"]: kind for kind in Classic.__subclasses__()}
