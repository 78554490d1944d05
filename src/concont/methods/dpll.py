"""DPLL (Wu et al. 2022): consistency of three views with a conformal label distribution."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from concont.core.balance import make_balance
from concont.core.controller import Controller, Verdict, label_quality
from concont.core.losses import (
    consistency_loss,
    inside_softmax,
    outside_cross_entropy,
    uniform_over,
)
from concont.types import (
    Batch,
    MethodDefaults,
    Nets,
    NonNegative,
    Plain,
    Positive,
    State,
    StepOut,
    setting,
)

CONTROLLED = {"controlled": True}
ADAPTIVE = {"controlled": True, "balance": "adaptive"}


@dataclass(frozen=True)
class Dpll(MethodDefaults):
    """No mass outside the set, and all views near the label distribution of the last visit."""

    name: Literal["dpll"] = "dpll"
    weight: NonNegative = 1.0  # lambda: of the consistency, once it has ramped up
    ramp: Positive = 0.5  # share of the run over which it does
    controlled: bool = False  # ConCont's controller decides which rows are held to be consistent
    balance: Literal["adaptive", "da", "cpl", "fixed"] = setting("adaptive", only_with=CONTROLLED)
    threshold: NonNegative = setting(0.8, only_with=CONTROLLED, shared=True)
    threshold_lower: NonNegative = setting(0.5, only_with=ADAPTIVE, shared=True)
    threshold_upper: NonNegative = setting(0.95, only_with=ADAPTIVE, shared=True)
    threshold_rate: NonNegative = setting(1.0, only_with=ADAPTIVE, shared=True)

    views = ("weak", "strong", "strong2")
    brings: ClassVar[Plain] = {  # of its paper; milestones as shares of the run
        "paper": {
            "views": {"weak": "pad4", "strong": "dpll"},
            "optimizer": {"lr": 0.1, "weight_decay": 1e-4, "schedule": "steps"},
            "train": {"batch_size": 64},
        },
        "svhn": {
            "views": {
                "flip": False,
                "weak": {"pad": 0, "ratio": [1.0, 1.0]},
                "strong": "dpll-svhn",
            }
        },
    }

    def __post_init__(self) -> None:
        _ = self.controller  # refuses bounds that contradict each other

    @property
    def controller(self) -> Controller:
        """Who is confident."""
        limits = (self.threshold_lower, self.threshold_upper, self.threshold_rate)
        return Controller(make_balance(self.balance, self.threshold, *limits))

    def init_state(self, candidates: Tensor, dim: int) -> State:
        """The conformal distribution of each row, uniform over its candidates at first."""
        state = {"conformal": uniform_over(candidates)}
        return state | (self.controller.init_state(*candidates.shape) if self.controlled else {})

    def losses(self, nets: Nets, state: State, batch: Batch) -> StepOut:
        """The candidate term on the weak view, and the divergence of all three."""
        features = nets.online.features(*(batch.views[name] for name in self.views))
        log_probs = [nets.online.logits(view).log_softmax(dim=1) for view in features]
        outside = outside_cross_entropy(log_probs[0], batch.candidates).mean()

        target = state["conformal"][batch.index]
        counts = torch.ones_like(batch.index, dtype=torch.bool)  # (B,) rows to be consistent
        to_commit, metrics = {}, label_quality(target.argmax(dim=1), batch.truth, batch.candidates)
        if self.controlled:
            verdict = self.controller.judge(target, batch.candidates, state)
            counts, to_commit, metrics = (
                verdict.confident,
                verdict.to_commit,
                verdict.quality(batch.truth, batch.candidates),
            )
        apart = torch.stack([consistency_loss(view, target, counts) for view in log_probs])
        divergence = apart.sum(dim=0).mean()
        ramp = (batch.epoch / (self.ramp * batch.epochs)).clamp(max=1)

        together = torch.stack([view.detach() for view in log_probs]).mean(dim=0)
        to_commit["conformal"] = inside_softmax(together, batch.candidates)
        return StepOut(
            total=outside + self.weight * ramp * divergence,
            terms={"loss_part": outside.detach(), "loss_reg": divergence.detach()},
            metrics=metrics,
            to_commit=to_commit,
        )

    def thresholds(self, state: State) -> Tensor | None:
        """The controller's, where there is one."""
        return self.controller.balance.thresholds(state) if self.controlled else None

    def judge(
        self, probs: Tensor, candidates: Tensor, state: State, weights: Tensor | None = None
    ) -> Verdict | None:
        """The controller's opinion, where there is one; it counts no votes."""
        return self.controller.judge(probs, candidates, state) if self.controlled else None

    def commit(self, nets: Nets, state: State, batch: Batch, out: StepOut) -> None:
        """The rows' new distributions, whatever the verdict; then the thresholds."""
        state["conformal"].index_copy_(0, batch.index, out.to_commit["conformal"])
        if self.controlled:
            self.controller.update(state, batch.index, out.to_commit)
