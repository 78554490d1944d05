"""Everything that changes while a run trains, and so everything that a checkpoint holds."""

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from concont.rng import derive
from concont.training.meter import Meter
from concont.types import Nets, State

PHASES = ("first_step", "steps", "evaluation")  # first_step: with its compilation
OWN = ("lr", "fused", "foreach")  # of the optimiser: the device's way, not a checkpoint's


@dataclass
class TrainState:
    """Networks, optimiser, the method's memory, random streams, counters."""

    nets: Nets
    optimizer: torch.optim.Optimizer
    method_state: State  # the method's
    views: torch.Generator  # draws the views
    steps_on_device: Tensor  # () float64: as `step`, where a captured step can read and count it
    meter: Meter
    step: int = 0  # optimiser steps done
    skipped: int = 0  # steps left out in a row, up to now
    best: float | None = None  # accuracy, over the evaluations so far
    seconds: float = 0.0  # spent, over all starts of the run
    # of these, by what they went to; the rest is logging, checkpoints and the like
    spent: dict[str, float] = field(default_factory=lambda: dict.fromkeys(PHASES, 0.0))

    def state_dict(self) -> dict[str, Any]:
        """Tensors and plain values alone, so that reading them back can run no code."""
        device = self.views.device
        return {
            "nets": {name: module.state_dict() for name, module in self.nets.modules.items()},
            "optimizer": self.optimizer.state_dict(),
            "memory": self.method_state,
            "device": device.type,
            "views": self.views.get_state(),
            "torch": torch.get_rng_state(),  # for a user's own network, which may use dropout
            "cuda": torch.cuda.get_rng_state(device) if device.type == "cuda" else None,
            "meter": self.meter.state_dict(),
            "step": self.step,
            "skipped": self.skipped,
            "best": self.best,
            "seconds": self.seconds,
            "spent": self.spent,
        }

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Go on exactly where `state_dict` was taken."""
        for name, module in self.nets.modules.items():
            module.load_state_dict(saved["nets"][name])
        own = [{name: group[name] for name in OWN} for group in self.optimizer.param_groups]
        self.optimizer.load_state_dict(saved["optimizer"])
        for group, kept in zip(self.optimizer.param_groups, own, strict=True):
            group.update(kept)
        for name, tensor in self.method_state.items():
            tensor.copy_(saved["memory"][name])
        if saved["device"] == self.views.device.type:
            self.views.set_state(saved["views"].cpu())
        else:  # the two kinds of device draw differently: a stream of its own, from here on
            self.views.manual_seed(derive(self.views.initial_seed(), saved["step"]))
        torch.set_rng_state(saved["torch"].cpu())
        if saved["cuda"] is not None and self.views.device.type == "cuda":
            torch.cuda.set_rng_state(saved["cuda"].cpu(), self.views.device)
        self.meter.load_state_dict(saved["meter"])
        self.step, self.best, self.seconds = saved["step"], saved["best"], saved["seconds"]
        self.skipped, self.spent = saved.get("skipped", 0), dict(saved["spent"])
        self.steps_on_device.fill_(self.step)

    def rewind(self, start: dict[str, Any]) -> None:
        """Back to a copy of an earlier `state_dict`, in place: a captured step goes on with it.

        A buffer of the optimiser that was not there is zero, from which it learns the same.
        """
        for name, module in self.nets.modules.items():
            module.load_state_dict(start["nets"][name])
        self._rewind_optimizer(start["optimizer"])
        for name, tensor in self.method_state.items():
            tensor.copy_(start["memory"][name])
        self.views.set_state(start["views"])
        torch.set_rng_state(start["torch"])
        if start["cuda"] is not None:
            torch.cuda.set_rng_state(start["cuda"], self.views.device)
        self.meter.rewind(start["meter"])
        self.step, self.best, self.seconds = start["step"], start["best"], start["seconds"]
        self.skipped, self.spent = start["skipped"], dict(start["spent"])
        self.steps_on_device.fill_(self.step)

    def _rewind_optimizer(self, start: dict[str, Any]) -> None:
        groups = self.optimizer.param_groups
        for group, before in zip(groups, start["param_groups"], strict=True):
            if isinstance(group["lr"], Tensor):
                group["lr"].copy_(before["lr"])
            else:
                group["lr"] = before["lr"]
        for number, parameter in enumerate(p for group in groups for p in group["params"]):
            known = start["state"].get(number, {})
            for name, value in self.optimizer.state.get(parameter, {}).items():
                if isinstance(value, Tensor):
                    value.copy_(known[name]) if name in known else value.zero_()
