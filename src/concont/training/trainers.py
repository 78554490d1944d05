"""What trains a method, and what predicts with it. A new way of training is a line in TRAINERS."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from torch import Tensor, nn

from concont.config.resolve import read_settings
from concont.data.sources import Dataset
from concont.errors import ConcontError, DataError, UsageError
from concont.nets.weights import identify_weights
from concont.ranks import world
from concont.runs.files import holds_settings
from concont.runs.folder import RunFolder
from concont.runs.settings import Settings
from concont.training import classic_run, network_run, pace, prepare
from concont.training.loop import Progress
from concont.training.predictor import Predictor


class PreparedRun(Protocol):
    """A run that is ready to start: everything checked, nothing written."""

    @property
    def settings(self) -> Settings:
        """All of them."""
        ...

    @property
    def folder(self) -> RunFolder:
        """Where it will be written."""
        ...

    @property
    def epochs(self) -> int | None:
        """Passes over the data; None: a single fit, which cannot be stopped and taken up."""
        ...

    def execute(self, stop: Callable[[], bool] = ...) -> Iterator[Progress]:
        """Train to the end, writing the run folder on the way; asks `stop` after every step."""
        ...


class PrepareRun(Protocol):
    """From settings to a run that is ready to start."""

    def __call__(
        self,
        settings: Settings,
        folder: RunFolder,
        data: Dataset | None = None,
        model: nn.Module | None = None,
        resumed: bool = False,
    ) -> PreparedRun:
        """data: instead of the source in the settings; model: an own network; resumed: go on."""
        ...


class RestorePredictor(Protocol):
    """From what a run folder holds to what its run has learned."""

    def __call__(
        self,
        settings: Settings,
        described: Mapping[str, Any],
        weights: Mapping[str, Tensor],
        device: str = "auto",
        model: nn.Module | None = None,
    ) -> Predictor:
        """described: `data.json`; weights: `model.safetensors`; model: an own network."""
        ...


@dataclass(frozen=True)
class Trainer:
    """One way of training: how a run is prepared, and how what it learned is read back.

    announce: from a prepared run, and the minutes that it may take, to the run as it will be
    trained, and a line that says what that is and how long it takes.
    """

    prepare: PrepareRun
    restore: RestorePredictor
    announce: Callable[[Any, float | None], tuple[PreparedRun, str]] = lambda run, _: (run, "")


TRAINERS = {
    "network": Trainer(prepare.prepare, network_run.NetworkPredictor.restore, pace.announce),
    "classic": Trainer(
        classic_run.prepare, classic_run.ClassicPredictor.restore, classic_run.announce
    ),
}


def trainer_of(settings: Settings) -> Trainer:
    """The one that the settings' method asks for."""
    return TRAINERS[settings.method.trainer]


def read_run_settings(folder: RunFolder, method: str | None = None) -> Settings:
    """The settings in a run's folder; refused if a result would not be that of the run.

    What cannot change the result, such as where the data lies, may be edited. method: FILE.py:Class
    of a method of the user's own, which no run folder can make run.
    """
    path, expected = folder.require("config.yaml"), folder.checksums.settings_hash
    try:
        settings = read_settings(path)
    except (UsageError, RecursionError) as error:
        raise folder.describe_damage("config.yaml", " ".join(str(error).split())) from None
    if not holds_settings(path):  # cut short between two lines, it would still be read
        raise folder.describe_damage("config.yaml", "it does not name every section")
    if expected is not None and not folder.checksums.fits("config.yaml"):
        data = folder.read_data() if (folder / "data.json").is_file() else {}
        if data and settings.hash(data.get("digest"), data.get("sets_hash")) != expected:
            raise DataError(
                f"{path} holds other settings than the run was started with; put them back, or "
                "train a new run with them: concont train --config"
            )
    return settings if method is None else read_settings(path, method)


def reopen_run(
    folder: RunFolder,
    data: Dataset | None = None,
    model: nn.Module | None = None,
    method: str | None = None,
) -> PreparedRun:
    """A run that was started and not finished, ready to go on from its last checkpoint.

    It has the folder's lock from here to the end of its training. method: as above.
    """
    folder.require("config.yaml")
    if world.leads():
        folder.lock.acquire(folder.path)
    try:
        folder.require_whole("environment.json", "data.json", "candidates.npz", "metrics.jsonl")
        settings = read_run_settings(folder, method)
        return trainer_of(settings).prepare(settings, folder, data, model, resumed=True)
    except BaseException:
        folder.lock.release()
        raise


def is_to_be_resumed(folder: RunFolder, settings: Settings, minutes: float | None = None) -> bool:
    """Whether torchrun has started this command again, and the folder holds what it began.

    minutes: the command's own, by which the run's epochs were chosen.
    """
    if not world.is_restarted() or not (folder / "config.yaml").is_file():
        return False
    try:
        begun = read_run_settings(folder, settings.own_method)
    except ConcontError:  # refused later, in words
        return False
    if minutes is not None:
        length = {n: getattr(begun.train, n) for n in ("epochs", "evaluate_every")}
        settings = replace(settings, train=replace(settings.train, **length))
    wanted = replace(settings, model=identify_weights(settings.model))
    return wanted.hash() == begun.hash()
