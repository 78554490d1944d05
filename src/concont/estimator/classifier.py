"""The classifier: parameters become settings, a run becomes what predicts."""

import copy
import tempfile
from collections.abc import Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, softmax
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_consistent_length, check_is_fitted
from torch import nn

from concont.answers.resolution import choose_labels, count_votes_in
from concont.api import train
from concont.classic.estimator import refuse_useless
from concont.classic.options import CLASSICS
from concont.classic.scores import SetScoreMixin
from concont.config.layers import merge
from concont.config.plain_values import to_plain
from concont.data.accept import accept_arrays, find_no_votes
from concont.data.problem import find_voted
from concont.data.targets import Sets, read_targets
from concont.errors import UsageError
from concont.estimator.inputs import as_value_errors, read_in_parts, read_to_fit
from concont.estimator.saving import SavedMixin
from concont.estimator.trained import Trained
from concont.run import Run
from concont.types import Plain

MEASURED = ("probability_on_sets", "share_in_sets")


class PartialLabelClassifier(SetScoreMixin, SavedMixin, BaseEstimator):  # type: ignore[misc]
    """A network that learns from candidate sets and from rows without any label.

    Of images, as arrays or files, or of rows of features. What is trained by default is ConCont
    [1]_, with settings that suit the data and the device.

    Parameters
    ----------
    method : str, default="concont"
        A method with a network: `concont`, `dpll`, `pico`, `proden`, `lws`, `partial`; or one of
        your own, `FILE.py:Class`.
    recipe : str, optional
        Settings to begin with, by name or YAML file; by default those that suit the data:
        `features` for rows of features, `own` for images on a GPU, `own-cpu` on a CPU.
    epochs : int, optional
        Passes over the data; by default the recipe's.
    settings : dict, optional
        Any other setting, such as `{"method.trust": 0.8, "optimizer.lr": 0.03}`.
    network : nn.Module, optional
        An own network that turns inputs into features (B, dim); a copy of it is trained.
    image_size : int, optional
        Side in pixels that image files are given; by default their own, at most 64.
    validation : float, default=0
        Share of the rows with a candidate set that is held out to measure the run on: see
        `validation_`.
    random_state : int, RandomState or None, default=None
        Seeds everything; the same whole number gives the same classifier on a CPU.
    device : {"auto", "cpu", "cuda"}, default="auto"
        Where to compute; `auto` is a GPU where there is one.
    out : str or Path, optional
        The run folder to keep, new at each `fit`; by default it is a temporary one.
    verbose : bool, optional
        Whether `fit` shows progress, on standard error; by default where a person watches.

    Attributes
    ----------
    classes_ : ndarray (C,)
        The classes by name, sorted; of a DataFrame its columns; 0 to C - 1 of any other matrix.
    labels_ : ndarray (N,)
        The class of each training row: the likeliest of its set, or one outside that the network is
        nearly certain of; by votes and network where votes were given, as `concont resolve` does.
    n_features_in_ : int
        D, the features of a row; of images there is none.
    history_ : list of dict
        The run's lines of metrics: losses, share of confident rows.
    validation_ : dict or None
        `probability_on_sets` and `share_in_sets` of the rows that were held out, if any.

    See Also
    --------
    concont.set_score : A scorer for rows of which candidate sets alone are known.
    concont.SSPLClassifier : Without a network, on rows of features.

    References
    ----------
    .. [1] "Controller-Guided Partial Label Consistency Regularization with Unlabeled Data",
       AAAI 2024, https://doi.org/10.1609/aaai.v38i14.29484

    Examples
    --------
    >>> import numpy as np
    >>> from concont import PartialLabelClassifier
    >>> X = np.random.RandomState(0).randn(90, 4) + 6 * np.eye(3, 4).repeat(30, axis=0)
    >>> sets = [{"ant"}, {"ant", "bee"}, None] * 10 + ["bee", "bee|cat", None] * 10
    >>> sets += [{"cat"}, {"cat", "ant"}, None] * 10
    >>> model = PartialLabelClassifier(epochs=20, random_state=0, device="cpu").fit(X, sets)
    >>> model.predict(X[::30]).tolist()
    ['ant', 'bee', 'cat']
    """

    classes_: NDArray[Any]
    labels_: NDArray[Any]

    def __init__(
        self,
        method: str = "concont",
        recipe: str | None = None,
        epochs: int | None = None,
        settings: Mapping[str, Any] | None = None,
        network: nn.Module | None = None,
        image_size: int | None = None,
        validation: float = 0.0,
        random_state: int | np.random.RandomState | None = None,
        device: str = "auto",
        out: str | Path | None = None,
        verbose: bool | None = None,
    ) -> None:
        self.method = method
        self.recipe = recipe
        self.epochs = epochs
        self.settings = settings
        self.network = network
        self.image_size = image_size
        self.validation = validation
        self.random_state = random_state
        self.device = device
        self.out = out
        self.verbose = verbose

    def fit(self, X: Any, y: Any, candidate_weights: Any = None) -> Self:
        """Learn from inputs and the candidate sets of each.

        Parameters
        ----------
        X : array or list
            Images, uint8, N x H x W or N x H x W x 3; a list of N paths of image files; or rows of
            features, floats, N x D.
        y : list, array, Series, DataFrame or sparse matrix
            Candidate sets: a list of sets of class names; a column of texts such as `cat|dog`; a
            matrix (N, C) of 0 and 1, dense, sparse or a DataFrame whose columns are the classes. Or
            plain labels, each a set of one, where -1 is a class like any other. `None`, NaN, an
            empty text and a set of all classes are an unlabelled row.
        candidate_weights : array, DataFrame or sparse matrix (N, C), optional
            How much speaks for each candidate, 0 outside of the set: counts of votes, or shares.
            Columns are in the order of `classes_`; those of a DataFrame are found by their names.
            Of votes alone: `fit(X, votes > 0, candidate_weights=votes)`, where a row without votes
            is unlabelled.

        Returns
        -------
        self
            The fitted classifier.
        """
        if y is None:
            name = type(self).__name__
            raise ValueError(f"{name} requires y to be passed, but the target y is None")
        with as_value_errors():
            inputs = read_to_fit(self, X, self.image_size)
            targets = read_targets(y, no_votes=find_no_votes(candidate_weights))
            check_consistent_length(inputs, targets.sets)
            refuse_useless(targets, has_votes=candidate_weights is not None)
            known = {"candidates": targets.sets, "candidate_weights": candidate_weights}
            data = accept_arrays({"x_train": inputs, **known, "classes": targets.classes})
            with self._choose_folder() as folder:
                run = train(
                    self._merge_settings(),
                    data=data,
                    model=self._copy_network(),
                    out=folder,
                    progress=self.verbose,
                )
                self._take(run, targets.classes)
        weights = data.get("candidate_weights")
        self.labels_ = self.classes_[self._name_rows(inputs, targets.sets, weights)]
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Give the probability of each class.

        Parameters
        ----------
        X : array or list
            Inputs of the kind that `fit` was given.

        Returns
        -------
        ndarray (N, C)
            Rows add up to 1; columns are in the order of `classes_`.
        """
        check_is_fitted(self, "classes_")
        with as_value_errors():
            return np.concatenate(
                [self._predict_part(part) for part in read_in_parts(self, X, self._predictor)]
            )

    def predict(self, X: Any) -> NDArray[Any]:
        """Give the class of each input.

        Parameters
        ----------
        X : array or list
            Inputs of the kind that `fit` was given.

        Returns
        -------
        ndarray (N,)
            Of `classes_`.
        """
        places = self.predict_proba(X).argmax(axis=1)
        labels: NDArray[Any] = self.classes_[places]
        return labels

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.three_d_array = True
        tags.input_tags.string = True  # paths of image files
        return tags

    def _take(self, run: Run, classes: NDArray[Any]) -> None:
        """Keep what a run has learned, whose folder may be gone soon."""
        weights = {name: each.cpu().numpy() for name, each in run.predictor.weights().items()}
        self._trained = Trained(run.settings.as_dict(), run.data, weights)
        self._live = run.predictor
        self.classes_ = classes
        self.history_ = run.read_history()
        measured = {name: run.summary[name] for name in MEASURED}
        self.validation_ = measured if self.validation else None

    def _name_rows(
        self, inputs: NDArray[Any], sets: Sets, weights: NDArray[Any] | None
    ) -> NDArray[np.int64]:
        """The class (N,) of each training row, by its set and its votes, if any."""
        scores, _ = self._predictor.scores_and_features(inputs)
        choice = choose_labels(softmax(scores, axis=1), sets)
        if weights is not None:
            votes = np.asarray(weights, np.float32)
            given = (sets, votes, find_voted(sets, votes))
            choice, _ = count_votes_in(choice, log_softmax(scores, axis=1), *given)
        return choice.label

    def _merge_settings(self) -> Plain:
        """Every parameter as the setting that it is, with `settings` laid over."""
        if self.method in CLASSICS:
            kind = {"sspl": "SSPLClassifier", "parm": "PARMClassifier"}[self.method]
            raise UsageError(f"{self.method} is a classifier of its own: concont.{kind}")
        seed = self.random_state
        if not isinstance(seed, int | np.integer):
            seed = check_random_state(seed).randint(2**31 - 1)
        plain: Plain = {
            "method": {"name": self.method},
            # The sets are what they are: a recipe's own way to draw some is none of theirs.
            "data": {"labeled": None, "ambiguity": None, "noise": 0.0},
            "train": {"seed": seed, "epochs": self.epochs, "device": self.device},
        }
        plain["data"] |= {"seed": seed, "holdout": self.validation}
        if self.epochs is None:
            del plain["train"]["epochs"]
        if self.recipe is not None:
            plain["recipe"] = self.recipe
        return merge(to_plain(plain), to_plain(self.settings or {}))

    def _copy_network(self) -> nn.Module | None:
        return copy.deepcopy(self.network)

    @contextmanager
    def _choose_folder(self) -> Any:
        if self.out is not None:
            yield Path(self.out)
            return
        with tempfile.TemporaryDirectory(prefix="concont-") as folder:
            yield Path(folder) / "run"

    def _predict_part(self, inputs: NDArray[Any]) -> NDArray[np.float64]:
        probs = self._predictor.predict_proba(inputs).astype(np.float64)
        found: NDArray[np.float64] = probs / probs.sum(axis=1, keepdims=True)
        return found
