"""What a fitted classifier keeps: to pickle, and to save as one file and load again."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted
from torch import nn

from concont.config.plain_values import to_plain
from concont.config.registry import is_reference
from concont.config.validate import get_section
from concont.errors import DataError, UsageError
from concont.estimator.inputs import as_value_errors
from concont.estimator.trained import Trained, read_trained
from concont.runs.output import refuse_output
from concont.runs.settings import code_name
from concont.training.predictor import Predictor

SAVED = ("method", "recipe", "epochs", "settings", "image_size", "validation", "random_state")
FITTED = ("n_features_in_", "history_", "validation_")
TEXT = "text"  # the type of classes that are names, of any length


def forget_code(params: Mapping[str, Any]) -> dict[str, Any]:
    """The same without names of code: what `fit` runs is for the user to choose, not for a file."""
    found = dict(params)
    if is_reference(found["method"]):
        found["method"] = code_name(found["method"]).rpartition(":")[2]
    if found["settings"] is None:
        return found
    settings = to_plain(found["settings"])
    for section, name in (("method", "name"), ("model", "own")):
        if is_reference(get_section(settings, section).get(name)):
            del settings[section][name]
            found["settings"] = settings
    return found


class SavedMixin:
    """A classifier that is its weights and a few plain values."""

    classes_: NDArray[Any]
    labels_: NDArray[Any]
    n_features_in_: int  # where it learned of rows of features
    device: str
    network: nn.Module | None
    _trained: Trained
    _live: Predictor | None  # on its device; made again where it was pickled

    def save(self, path: str | Path, overwrite: bool = False) -> None:
        """Write the fitted classifier into one file of safetensors; nothing in it is code.

        Parameters
        ----------
        path : str or Path
            The file, such as `model.safetensors`.
        overwrite : bool, default=False
            Whether to replace a file that is there.
        """
        check_is_fitted(self, "classes_")
        with as_value_errors():
            if not overwrite and Path(path).exists():
                raise UsageError(f"{path} is there already; overwrite=True replaces it")
            refuse_output(Path(path), overwrite)
            params = {name: getattr(self, name) for name in SAVED}
            fitted = {name: getattr(self, name) for name in FITTED if hasattr(self, name)}
            names = {**_describe_classes(self.classes_), "network": self.network is not None}
            if hasattr(self, "feature_names_in_"):
                names["feature_names"] = self.feature_names_in_.tolist()
            place = {each: k for k, each in enumerate(self.classes_.tolist())}
            places = np.array([place[each] for each in self.labels_.tolist()])
            more = {"params": params, "fitted": fitted, **names}
            self._trained.write(Path(path), more, {"labels": places})

    @classmethod
    def load(
        cls, path: str | Path, *, device: str = "auto", network: nn.Module | None = None
    ) -> Self:
        """Read what `save` wrote.

        Code of your own that the file names is never run: to `fit` anew, set `method` again.

        Parameters
        ----------
        path : str or Path
            The file.
        device : {"auto", "cpu", "cuda"}, default="auto"
            Where to predict.
        network : nn.Module, optional
            The own network that it was trained with, if any; a copy gets the file's weights.

        Returns
        -------
        PartialLabelClassifier
            It predicts what the one that was saved does.
        """
        with as_value_errors():
            trained, more, arrays = read_trained(Path(path))
            try:
                known = forget_code({name: more["params"][name] for name in SAVED})
                model = cls(**known, device=device, network=network)  # type: ignore[call-arg]
                model.classes_ = _read_classes(more)
                if list(map(str, more["classes"])) != trained.data["classes"]:
                    raise ValueError("it names other classes than it learned")
                model.labels_ = model.classes_[arrays["labels"]]
                if "feature_names" in more:
                    named = np.array(more["feature_names"], dtype=object)
                    model.feature_names_in_ = named  # type: ignore[attr-defined]
                for name in FITTED:
                    if name in more["fitted"]:
                        setattr(model, name, more["fitted"][name])
                if len(trained.data["shape"]) == 1:  # rows of features
                    (model.n_features_in_,) = trained.data["shape"]
            except (LookupError, TypeError, ValueError) as error:
                raise DataError(f"{path} is damaged: {type(error).__name__}: {error}") from None
            model._trained = trained
            model._live = trained.make_predictor(device, network)
        return model

    def __getstate__(self) -> dict[str, Any]:
        """Without what lies on a device: it is made again from the weights."""
        state: dict[str, Any] = super().__getstate__()  # type: ignore[assignment]
        return {**state, "_live": None} if "_live" in state else state

    @property
    def _predictor(self) -> Predictor:
        if self._live is None:
            self._live = self._trained.make_predictor(self.device, self.network)
        return self._live


def _describe_classes(classes: NDArray[Any]) -> dict[str, Any]:
    """Names or numbers as JSON knows them, and their type."""
    if classes.dtype.kind not in "biufU":
        kind = type(classes.tolist()[0]).__name__
        raise UsageError(f"classes of type {kind} go into no such file, only names and numbers do")
    kind = TEXT if classes.dtype.kind == "U" else classes.dtype.name
    return {"classes": classes.tolist(), "type": kind}


def _read_classes(more: dict[str, Any]) -> NDArray[Any]:
    kind = more["type"]
    found = np.array(more["classes"], dtype=None if kind == TEXT else np.dtype(kind))
    if found.dtype.kind not in "biufU" or found.ndim != 1:
        raise ValueError("classes are no list of names or numbers")
    return found
