"""A run that trains a network: step by step, with checkpoints; and the predictor that it leaves."""

import copy
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from concont.config.own_network import refuse_unnamed
from concont.data.mapped_arrays import RowsOf
from concont.data.order import Order
from concont.data.placement import TrainingSet, place_images, to_images
from concont.data.problem import Problem
from concont.data.sources import Inputs, Labels
from concont.device import choose_device
from concont.errors import DataError, Interrupted, NonFiniteLoss, UsageError
from concont.nets.network import Moments, Network, build, order_axes
from concont.ranks import world
from concont.runs.folder import RunFolder
from concont.runs.resuming import resume_command
from concont.runs.settings import Settings
from concont.training import checkpoint
from concont.training.evaluate import TestSet, predict_proba, predict_with_features
from concont.training.loop import Progress, fit
from concont.training.memory import full_memory_in_words
from concont.training.non_finite import diagnose, refuse_bad_weights
from concont.training.predictor import check_inputs_fit
from concont.training.pseudo_labels import judge_training_rows
from concont.training.quality import evaluate_probabilities
from concont.training.recorder import AnyRecorder, Recorder, SilentRecorder
from concont.training.state import TrainState
from concont.training.step import Step


@dataclass(frozen=True)
class NetworkRun:
    """A run that is ready to start: checked and built, with nothing written yet."""

    settings: Settings
    folder: RunFolder
    problem: Problem
    data: TrainingSet
    order: Order
    test: TestSet | None
    state: TrainState
    resumed: bool = False
    step: Step | None = None  # where some were timed already
    carried: int | None = None  # classes that a run which it starts from knows; None: there is none

    @property
    def epochs(self) -> int:
        """Passes over the data."""
        return self.settings.train.epochs

    @property
    def total_steps(self) -> int:
        """Optimiser steps of the whole run."""
        return self.epochs * self.order.steps

    @property
    def moments(self) -> Moments:
        """Mean and deviation of each channel, or feature, that its networks normalise by."""
        online = self.state.nets.modules["online"]
        mean, std = (online.get_buffer(name).flatten() for name in ("mean", "std"))
        return mean, std

    @property
    def predictor(self) -> "NetworkPredictor":
        """What its networks predict as they are now."""
        problem = self.problem
        return NetworkPredictor(problem.classes, problem.images.shape[1:], self.state.nets.modules)

    def execute(self, stop: Callable[[], bool] = lambda: False) -> Iterator[Progress]:
        """Train to the end, writing the run folder on the way; asks `stop` after every step."""
        since = self.state.step if self.resumed else None
        what = (self.folder, self.settings, self.problem, self.data.device, self.moments)
        recorder = Recorder(*what, since) if world.leads() else SilentRecorder()
        try:
            with full_memory_in_words(self.settings, self.state, self.data, self.order):
                yield from self._train(recorder, stop)
            self._write_verdict()
            spent, seconds = self.state.spent, self.state.seconds
            recorder.finish(
                self.predictor.weights(),
                epochs=self.epochs,
                steps=self.state.step,
                batch_size=self.order.batch_size,
                seconds=seconds,
                seconds_by={**spent, "other": seconds - sum(spent.values())},
            )
        except NonFiniteLoss as error:
            path = self.folder / checkpoint.CURRENT
            last = f"the last good checkpoint is {path}" if path.exists() else "no checkpoint yet"
            found = diagnose(error, self.state, self.order)
            raise NonFiniteLoss(f"{found}; {last}", error.step) from None
        finally:
            recorder.close()

    def _train(self, recorder: AnyRecorder, stop: Callable[[], bool]) -> Iterator[Progress]:
        state, every = self.state, self.settings.train.checkpoint_every
        parts = (self.settings, state, self.data, self.order, self.test, self.step)
        saved_at = time.perf_counter()
        for progress in fit(*parts):
            # Before the checkpoint: a line too many is cut on resuming, a missing one is lost.
            if progress.row is not None:
                recorder.add(progress.row)
            ended = progress.step == progress.total
            due = progress.epoch_end and time.perf_counter() - saved_at >= every
            due, stopping = world.any_rank(due, not ended and stop())
            if due or stopping or ended:
                state.meter.check()  # never a checkpoint of a broken run
                refuse_bad_weights(state)
                if world.leads():  # the others' state is the same
                    checkpoint.save(self.folder, state.state_dict())
                saved_at = time.perf_counter()
            yield progress
            if stopping:
                raise Interrupted(
                    f"stopped after step {state.step} of {progress.total}; "
                    f"go on with: {resume_command(self.folder.path, self.settings)}"
                )

    def _write_verdict(self) -> None:
        """What the method's controller says of the training rows, if it has one."""
        began = time.perf_counter()
        found = judge_training_rows(self.settings.network_method, self.state, self.data)
        if found is not None and world.leads():
            self.folder.write_json("verdict.json", found)
        self.state.seconds += time.perf_counter() - began


@dataclass(frozen=True)
class NetworkPredictor:
    """Predicts with a trained network."""

    classes: tuple[str, ...]
    shape: tuple[int, ...]  # (H, W, channels), or (D,) of features
    networks: Mapping[str, nn.Module]  # "online" predicts; "key" is kept beside it, if any
    gives_probabilities = True

    @classmethod
    def restore(
        cls,
        settings: Settings,
        described: Mapping[str, Any],
        weights: Mapping[str, Tensor],
        device: str = "auto",
        model: nn.Module | None = None,
    ) -> "NetworkPredictor":
        """From a run's settings, `data.json` and weights; model: an own network, if it was one."""
        if model is None:
            refuse_unnamed(settings.model)
        classes, moments = tuple(described["classes"]), described["normalisation"]
        shape = order_axes(tuple(described["shape"]))
        scale = torch.tensor(moments["mean"]), torch.tensor(moments["std"])
        if not len(moments["mean"]) == len(moments["std"]) == shape[0]:
            raise DataError("its inputs have another shape than what they are normalised by")
        model = copy.deepcopy(model)  # its weights are replaced, and others may be using it
        seed = settings.train.seed
        # What the weights were when training began is of no account: these replace them.
        network = build(settings.model, shape, len(classes), scale, seed, model, load_weights=False)
        prefix = "online."
        own = {k.removeprefix(prefix): v for k, v in weights.items() if k.startswith(prefix)}
        try:
            network.load_state_dict(own)
        except RuntimeError:
            raise UsageError(
                "the run holds no network that its settings describe; if it is one of your own, "
                "name it: --model FILE.py:make; in Python, concont.load(..., model=...)"
            ) from None
        network.to(choose_device(device)).eval()
        return cls(classes, tuple(described["shape"]), {"online": network})

    @property
    def device(self) -> torch.device:
        """Where the network lies."""
        mean: Tensor = self.networks["online"].get_buffer("mean")
        return mean.device

    def predict_proba(self, inputs: ArrayLike) -> NDArray[np.float32]:
        """Class probabilities (M, C) of images, or of rows of features."""
        images = to_images(check_inputs_fit(inputs, self.shape), self.device)
        probs: NDArray[np.float32]
        probs = predict_proba(self.networks["online"], images).float().cpu().numpy()
        return probs

    def scores_and_features(
        self, inputs: Inputs | RowsOf
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Class scores (M, C) and features (M, dim) of images, a part at a time."""
        images = place_images(inputs, self.device, memory_share=0.5)
        online = cast(Network, self.networks["online"])
        scores, features = predict_with_features(online, images)
        return scores.numpy(), features.numpy()

    def predict(self, inputs: ArrayLike) -> Labels:
        """The likeliest class (M,) of each image."""
        likeliest: Labels = self.predict_proba(inputs).argmax(axis=1)
        return likeliest

    def evaluate(self, inputs: ArrayLike, labels: Labels) -> dict[str, Any]:
        """Accuracies, confusions, and how well the probabilities are calibrated."""
        return evaluate_probabilities(self.predict_proba(inputs), labels, self.classes)

    def weights(self) -> dict[str, Tensor]:
        """Of every network, under its name."""
        return {
            f"{name}.{key}": tensor
            for name, network in self.networks.items()
            for key, tensor in network.state_dict().items()
        }
