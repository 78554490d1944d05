"""One optimiser step, from the images of a batch to everything that it changes."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from concont.augment.features import FeatureRenderer
from concont.augment.views import ViewRenderer
from concont.core.memory import average_
from concont.data.placement import TrainingSet
from concont.ranks import tensors as ranks
from concont.ranks import world
from concont.runs.settings import Settings
from concont.training.cuda_speed import (
    Captured,
    CompiledNet,
    compile_networks,
    compiled,
    should_compile,
    without_warnings,
)
from concont.training.meter import Meter
from concont.training.non_finite import GradientGuard
from concont.training.state import TrainState
from concont.types import Batch, Nets, State, StepOut

log = logging.getLogger("concont")
Draws = Mapping[str, Tensor]


class Step:
    """Trains on a batch: the same for every method, compiled and captured where asked for.

    `fast` None: as the settings say, which by default is on a GPU. `n_partial`: how many rows at
    the head of each batch hold all of its partial ones, where the order keeps to that.
    """

    def __init__(
        self,
        settings: Settings,
        state: TrainState,
        data: TrainingSet,
        fast: bool | None = None,
        n_partial: int | None = None,
    ) -> None:
        self.settings, self.state, self.data = settings, state, data
        self.n_partial = n_partial
        fast = should_compile(settings, data.device) if fast is None else fast
        self.backward_compiles = fast  # when it is first called
        method, reasons = settings.network_method, set[str]()

        def commit_and_count(
            nets: Nets, memory: State, steps: Tensor, meter: Meter, batch: Batch, out: StepOut
        ) -> None:
            method.commit(nets, memory, batch, out)
            steps += 1
            meter.add(out, steps)

        self.renderer = _make_renderer(settings, state, lambda s: compiled(s, fast, reasons))
        weights = state.nets.modules["online"].parameters()
        self.losses = ranks.replicate(compiled(method.losses, fast, reasons), weights)
        self.commit_and_count = compiled(commit_and_count, fast, reasons)
        self.nets = state.nets
        beside = fast and data.device.type == "cuda" and world.size() == 1
        if beside and state.nets.key is not state.nets.online:
            self.nets = Nets(*compile_networks(state.nets, reasons))
        limit = settings.train.skip_nonfinite
        self.guard = GradientGuard(limit, state) if limit else None
        self.clock = torch.tensor([0.0, settings.train.epochs], device=data.device)
        self.run: Callable[[Tensor, Tensor, Draws], None] = self.update
        # A user's own network may do in Python what a graph would not do again: unless asked for.
        foreign = any(getattr(m, "foreign", False) for m in state.nets.modules.values())
        wanted = self.guard is None and (settings.train.compile or not foreign)
        if beside and wanted:  # what a guard decides cannot be captured
            self.run = Captured(self.update)
        if fast and data.device.type == "cuda" and world.size() > 1:
            log.warning("of several ranks a step is compiled, not captured as a CUDA graph: slower")

    def __call__(self, index: Tensor, images: Tensor, lr: float, epoch: int = 0) -> None:
        """One step on the rows `index` (B,), and this rank's uint8 images or features of them."""
        self.clock[0].fill_(epoch)
        draws = {name: ranks.own_rows(drawn) for name, drawn in self.draw(len(index)).items()}
        self.set_rate(lr)
        self.run(index, images, draws)
        self.state.step += 1

    def set_length(self, epochs: int) -> None:
        """How many epochs the run will have, which some methods' schedules ask for."""
        self.clock[1].fill_(epochs)

    def set_rate(self, lr: float) -> None:
        """The learning rate of the next step; the backbone's may be a multiple of it."""
        for group in self.state.optimizer.param_groups:
            own = lr * group.get("multiple", 1.0)
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(own)  # a captured step reads it from there
            else:
                group["lr"] = own

    def draw(self, rows: int) -> Draws:
        """The random numbers that the views of so many rows are made by."""
        names = self.settings.network_method.views
        return self.renderer.draw(self.settings.views, names, rows, self.state.views)

    def render_views(self, images: Tensor, draws: Draws) -> dict[str, Tensor]:
        """The views that the method wants."""
        return self.renderer.render(images, self.settings.views, draws)

    def render_for_both(self, images: Tensor, draws: Draws) -> dict[str, Tensor]:
        """The same, with what only the key network sees made beside the rest where it can be."""
        key = self.nets.key
        if not isinstance(key, CompiledNet):
            return self.render_views(images, draws)
        own, rest = dict[str, Tensor](), dict[str, Tensor]()
        for name, uniforms in draws.items():
            (own if name in self.settings.network_method.key_views else rest)[name] = uniforms
        made = key.run_on_stream(lambda: self.render_views(images, own))
        return {**self.render_views(images, rest), **made}

    def batch(self, index: Tensor, views: Mapping[str, Tensor]) -> Batch:
        """What the method is given of the rows `index` (B,); views are of this rank's alone."""
        data, (epoch, epochs) = self.data, self.clock.unbind()
        sets, truth = data.candidates[index], data.truth[index]
        weights = None if data.weights is None else data.weights[index]
        return Batch(index, sets, views, truth, epoch, epochs, self.n_partial, weights)

    def update(self, index: Tensor, images: Tensor, draws: Draws) -> None:
        """All that a step does on the device; nothing in it waits for the device."""
        state = self.state
        with torch.no_grad():
            views = self.render_for_both(images, draws)
        whole = self.batch(index, views)
        out = self.learn(whole)
        if out is None:
            state.steps_on_device += 1
            return
        with torch.no_grad():
            state.meter.match_columns(out)  # in plain Python, so before a step is captured
            counted = (state.steps_on_device, state.meter)
            self.commit_and_count(state.nets, state.method_state, *counted, whole, out)

    def compute_losses(self, batch: Batch) -> StepOut:
        """What the method makes of a batch; nothing is changed but BatchNorm's averages."""
        if isinstance(self.nets.key, CompiledNet):
            self.nets.key.mark_start()  # its pass may start here
        return self.losses(self.nets, self.state.method_state, batch)

    def learn(self, whole: Batch) -> StepOut | None:
        """Losses, backward pass, optimiser, momentum network; None: the step is left out."""
        state, method = self.state, self.settings.network_method
        if self.guard is not None:
            self.guard.remember()
        own = choose_own_rows(whole)
        out = self.compute_losses(own)
        state.optimizer.zero_grad()  # there are gradients only if capturing the last step failed
        backward: Callable[[], None] = out.total.backward
        if self.backward_compiles:
            backward, self.backward_compiles = without_warnings(backward), False
        backward()
        out = ranks.combine(out, len(own.index))
        if self.guard is not None and not self.guard.allows(out, whole.index):
            state.optimizer.zero_grad()
            return None
        state.optimizer.step()
        state.optimizer.zero_grad()  # a graph is captured without any
        momentum = method.key_momentum(state.steps_on_device)
        if momentum is not None:
            average_(state.nets.modules["key"], state.nets.modules["online"], momentum)
        return out


def _make_renderer(
    settings: Settings, state: TrainState, wrap: Callable[[Any], Any]
) -> ViewRenderer | FeatureRenderer:
    """What makes the views of what the network learns of."""
    if not settings.model.of_features:
        return ViewRenderer(wrap)
    online = state.nets.modules["online"]
    return FeatureRenderer(online.get_buffer("mean"), online.get_buffer("std"), wrap)


def choose_own_rows(whole: Batch) -> Batch:
    """This rank's rows of a batch whose views are of these rows alone."""
    if world.size() == 1:
        return whole
    rows, n_partial = ranks.own_rows, whole.n_partial
    return replace(
        whole,
        index=rows(whole.index),
        candidates=rows(whole.candidates),
        truth=rows(whole.truth),
        weights=None if whole.weights is None else rows(whole.weights),
        n_partial=None if n_partial is None else ranks.count_own_rows(n_partial),
    )
