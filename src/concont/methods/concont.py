"""ConCont: controller-guided partial label consistency regularisation (the paper's method)."""

from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from concont.core.balance import make_balance
from concont.core.blend import blend, blend_shares
from concont.core.contrast import contrast_masks, without
from concont.core.controller import Controller, Verdict
from concont.core.doubt import Doubt, believe
from concont.core.evidence import fading, find_unlabeled, weigh_classes
from concont.core.losses import (
    PART_MEANS,
    consistency_loss,
    contrastive_loss,
    partial_cross_entropy,
    uniform_cross_entropy,
    uniform_cross_entropy_of_all,
)
from concont.core.memory import EMPTY, empty_queue, push_, rising
from concont.ranks.tensors import gather_rows, gather_with_gradient, own_rows
from concont.types import (
    NONZERO,
    Batch,
    Fraction,
    MethodDefaults,
    Nets,
    NonNegative,
    Positive,
    Slots,
    State,
    StepOut,
    Trust,
    setting,
)

PART_LOSSES = {
    ("partial", "partial"): partial_cross_entropy,
    ("partial", "all"): partial_cross_entropy,  # 0 where every class is a candidate, either way
    ("uniform", "partial"): uniform_cross_entropy,
    ("uniform", "all"): uniform_cross_entropy_of_all,
}

# Choices that other settings need.
ADAPTIVE = {"balance": "adaptive"}
UNIFORM = {"part_loss": "uniform"}
WITH_PART = {"part_loss": ("partial", "uniform")}
TAUGHT = {**WITH_PART, "weak_rows": "partial"}  # the online network's weak view serves Eq. 1 alone
WITH_LABELS, WITH_CONTRAST = {"label_weight": NONZERO}, {"repr_weight": NONZERO}


@dataclass(frozen=True)
class ConCont(MethodDefaults):
    """Eq. 5: the partial loss, and consistency of labels and of representations."""

    name: Literal["concont"] = "concont"
    branches: Literal["three", "two"] = "three"
    part_loss: Literal["partial", "uniform", "none"] = "partial"
    part_rows: Literal["partial", "all"] = setting("partial", only_with=UNIFORM)  # whom it holds
    part_mean: Literal["batch", "partial"] = setting("batch", only_with=WITH_PART)
    part_weight: NonNegative = setting(1.0, only_with=WITH_PART)  # in Eq. 5; the paper's is 1
    # Eq. 1 on blends of two weak views, held against both sets: at most this of the second; 0: none
    part_blend: Fraction = setting(0.0, only_with=TAUGHT)
    partial_soft: bool = False  # hold every partial row against its probabilities inside the set
    weak_rows: Literal["all", "partial"] = "all"  # whose weak view the online network sees
    trust: Trust = setting(1.0, shared=True)  # share of the sets that are believed: `core.doubt`
    # how much more one candidate weighs that has more votes: the exponent of its share of them
    vote_strength: NonNegative = setting(1.0, shared=True)
    vote_strength_end: NonNegative | None = setting(None, shared=True)  # of a run; None: as before
    label_weight: NonNegative = 1.0  # lambda in Eq. 5
    repr_weight: NonNegative = 0.1  # mu in Eq. 5
    pseudo: Literal["hard", "soft"] = setting("hard", only_with=WITH_LABELS)
    teacher: Literal["online", "momentum"] = "online"  # whose weak view gives the pseudo-labels
    score_weights: tuple[NonNegative, NonNegative, NonNegative] = (1.0, 1.0, 1.0)  # Eq. 2
    balance: Literal["adaptive", "da", "cpl", "fixed"] = "adaptive"
    threshold: NonNegative = setting(0.8, shared=True)  # tau at the start
    threshold_lower: NonNegative = setting(0.5, only_with=ADAPTIVE, shared=True)  # tau_l in Eq. 8
    threshold_upper: NonNegative = setting(0.95, only_with=ADAPTIVE, shared=True)  # tau_u in Eq. 8
    threshold_rate: NonNegative = setting(1.0, only_with=ADAPTIVE, shared=True)  # gamma in Eq. 7
    selection: Literal["ours", "hcp", "hcpn", "supcon", "unsupcon", "true"] = setting(
        "ours", only_with=WITH_CONTRAST
    )
    # queries: the batch's other ones too
    contrast_set: Literal["keys", "queries"] = setting("keys", only_with=WITH_CONTRAST)
    temperature: Positive = setting(0.07, only_with=WITH_CONTRAST)  # t in Eq. 4
    queue: Slots = setting(8192, shared=True)
    momentum: Fraction = setting(0.999, shared=True)  # of the key network
    momentum_rises: bool = setting(False, shared=True)  # to that value, from 0.1

    wants_unlabeled = True

    def __post_init__(self) -> None:
        _ = self.controller  # refuses bounds that contradict each other
        everywhere = self.part_loss == "uniform" and self.part_rows == "all"
        if everywhere and self.part_mean == "partial":
            raise ValueError("part_rows all and part_mean partial contradict each other")
        if self.weak_rows == "partial" and (everywhere or self.teacher == "online"):
            raise ValueError("weak_rows partial needs teacher momentum, and no part_rows all")

    @property
    def views(self) -> tuple[str, ...]:
        """The weak view, the strong one, and with three branches a second strong draw."""
        return ("weak", "strong", "strong2") if self.branches == "three" else ("weak", "strong")

    @property
    def key_views(self) -> tuple[str, ...]:  # type: ignore[override]
        """The second strong draw; with two branches the key network shares the weak view."""
        return self.views[2:]

    @property
    def partial_rows_first(self) -> bool:  # type: ignore[override]
        """So that the online network's weak view can end after them."""
        return self.weak_rows == "partial"

    @property
    def reads_truth(self) -> bool:  # type: ignore[override]
        """Only where the contrast is to be guided by true labels: a bound."""
        return self.selection == "true"

    def key_momentum(self, step: Tensor) -> float | Tensor | None:
        """The key network follows at this pace."""
        return rising(self.momentum, step) if self.momentum_rises else self.momentum

    @property
    def controller(self) -> Controller:
        """Who is confident."""
        limits = (self.threshold_lower, self.threshold_upper, self.threshold_rate)
        balance = make_balance(self.balance, self.threshold, *limits)
        return Controller(balance, self.score_weights)

    @property
    def doubt(self) -> Doubt:
        """Whose sets are overruled."""
        return Doubt(self.trust)

    def init_state(self, candidates: Tensor, dim: int) -> State:
        """What the controller remembers, and an empty queue of keys."""
        return {
            **self.controller.init_state(*candidates.shape),
            **self.doubt.init_state(*candidates.shape),
            **empty_queue(self.queue, dim),
        }

    def losses(self, nets: Nets, state: State, batch: Batch) -> StepOut:
        """Eqs. 1-5 on one batch."""
        # One pass for both views, so that all their rows share one set of BatchNorm statistics.
        weak, strong = nets.online.features(self._weak_view(batch), batch.views["strong"])
        logits_weak, logits_strong = nets.online.logits(weak), nets.online.logits(strong)
        keys, teacher_logits = self._key_pass(nets, batch)

        guess = logits_weak.detach() if teacher_logits is None else teacher_logits
        probs = guess.softmax(dim=1)
        candidates, evidence = self._believe(batch, state)
        verdict = self.controller.judge(probs, candidates, state, evidence)  # Eq. 2
        target = self._target(evidence, verdict)
        labels = batch.truth if self.selection == "true" else verdict.label

        part = self._part(logits_weak, evidence)  # Eq. 1
        held = verdict.confident
        if self.partial_soft:
            held = held | ~find_unlabeled(evidence)
        label_level = consistency_loss(logits_strong, target, held).mean()  # Eq. 3
        repr_level = self._contrast(nets.online.embed(strong), keys, labels, verdict, state).mean()
        total = (  # Eq. 5
            self.part_weight * part
            + self.label_weight * label_level
            + self.repr_weight * repr_level
        )

        return StepOut(
            total=total,
            terms={
                "loss_part": part.detach(),
                "loss_reg": label_level.detach(),
                "loss_contrast": repr_level.detach(),
            },
            metrics={
                **verdict.quality(batch.truth, evidence),
                **self._count_overruled(batch, evidence),
            },
            to_commit={"keys": keys, "label": labels, **verdict.to_commit},
        )

    def commit(self, nets: Nets, state: State, batch: Batch, out: StepOut) -> None:
        """Move the thresholds (Eqs. 7, 8) and queue the keys."""
        stored = out.to_commit
        self.controller.update(state, batch.index, stored)
        if self.trust < 1:
            given = stored["verdict_given"]
            self.doubt.update(state, batch.index, batch.candidates, given)
        push_(state, stored["keys"], stored["label"], stored["verdict_confident"])

    def thresholds(self, state: State) -> Tensor | None:
        """The controller's."""
        return self.controller.balance.thresholds(state)

    def judge(
        self, probs: Tensor, candidates: Tensor, state: State, weights: Tensor | None = None
    ) -> Verdict | None:
        """The controller's opinion, with votes as strong and sets believed as at a run's end."""
        end = self.vote_strength if self.vote_strength_end is None else self.vote_strength_end
        evidence = weigh_classes(candidates, weights, end)
        sets, evidence = believe(candidates, evidence, self.overruled(candidates, state))
        return self.controller.judge(probs, sets, state, evidence)

    def overruled(self, candidates: Tensor, state: State) -> Tensor | None:
        """Those that are doubted."""
        if self.trust == 1:
            return None
        every = torch.arange(len(candidates), device=candidates.device)
        return self.doubt.overrule(every, candidates, state, done=torch.ones(()))

    def _believe(self, batch: Batch, state: State) -> tuple[Tensor, Tensor]:
        """The candidate sets that are believed, and how far each class is spoken for (B, C)."""
        strength = fading(self.vote_strength, self.vote_strength_end, batch.epoch, batch.epochs)
        evidence = weigh_classes(batch.candidates, batch.weights, strength)
        if self.trust == 1:
            return batch.candidates, evidence
        done = batch.epoch / batch.epochs
        overruled = self.doubt.overrule(batch.index, batch.candidates, state, done)
        return believe(batch.candidates, evidence, overruled)

    def _count_overruled(self, batch: Batch, evidence: Tensor) -> dict[str, tuple[Tensor, Tensor]]:
        """For the log: of the partial rows, those that are not believed."""
        if self.trust == 1:
            return {}
        partial = ~batch.candidates.all(dim=1)
        return {"overruled": ((partial & find_unlabeled(evidence)).sum(), partial.sum())}

    def _weak_view(self, batch: Batch) -> Tensor:
        """What the online network sees of the weak view: all rows, or what Eq. 1 needs."""
        every = batch.views["weak"]
        if self.weak_rows == "all":
            return every
        seen = every[: batch.n_partial]
        return blend(seen, self.part_blend) if self.part_blend else seen

    def _key_pass(self, nets: Nets, batch: Batch) -> tuple[Tensor, Tensor | None]:
        """Keys z' (B, D), and the momentum network's weak logits where it is the teacher."""
        key_view = "strong2" if self.branches == "three" else "weak"
        wanted = ["weak", key_view] if self.teacher == "momentum" else [key_view]
        names = list(dict.fromkeys(wanted))  # two branches: one view serves both
        with torch.no_grad():
            passed = nets.key.features(*(batch.views[name] for name in names))
            features = dict(zip(names, passed, strict=True))
            logits = nets.key.logits(features["weak"]) if self.teacher == "momentum" else None
            return nets.key.embed(features[key_view]), logits

    def _target(self, evidence: Tensor, verdict: Verdict) -> Tensor:
        """What the strong view is held against (B, C): one-hot, or the distribution as weighed."""
        hard = F.one_hot(verdict.label, evidence.shape[1]).to(verdict.probs.dtype)
        if self.pseudo == "hard" and not self.partial_soft:
            return hard
        likely = verdict.probs * evidence
        mass = likely.sum(dim=1, keepdim=True)
        soft = torch.where(mass > 0, likely / mass, hard)
        if self.pseudo == "soft":
            return soft
        return torch.where(find_unlabeled(evidence)[:, None], hard, soft)

    def _part(self, logits: Tensor, evidence: Tensor) -> Tensor:
        """Eq. 1, or what an ablation puts in its place; of blends, with the sets of both."""
        if self.part_loss == "none":
            return logits.new_zeros(())
        known = len(logits)  # the rows after these have no candidate set, so no loss
        loss, sets = PART_LOSSES[self.part_loss, self.part_rows], evidence[:known]
        rows = loss(logits, sets)
        if self.part_blend:
            rows = rows.lerp(loss(logits, sets.flip(0)), blend_shares(known, self.part_blend, rows))
        rows = F.pad(rows, (0, len(evidence) - known))
        return PART_MEANS[self.part_mean](rows, evidence)

    def _contrast(
        self, queries: Tensor, keys: Tensor, labels: Tensor, verdict: Verdict, state: State
    ) -> Tensor:
        """Eq. 4 (B,) against this batch's keys, the queue's, and where asked for its queries."""
        keys, all_labels, all_sure = gather_rows(keys, labels, verdict.confident)
        z, key_labels = [keys, state["queue_z"]], [all_labels, state["queue_label"]]
        sure = [all_sure, state["queue_confident"]]
        if self.contrast_set == "queries":
            z = [*z, gather_with_gradient(queries)]
            key_labels, sure = [*key_labels, all_labels], [*sure, all_sure]
        own = own_rows(torch.arange(len(keys), device=labels.device))
        masks = contrast_masks(
            self.selection,
            labels,
            verdict.confident,
            torch.cat(key_labels),
            torch.cat(sure),
            key_valid=torch.cat(key_labels) != EMPTY,
            own_key=own,
        )
        if self.contrast_set == "queries":
            masks = without(own + len(keys) + len(state["queue_label"]), masks)
        return contrastive_loss(queries, torch.cat(z), *masks, self.temperature)
