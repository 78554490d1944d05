"""The paper's loss terms as pure functions of tensors; each returns one value a row."""

from collections.abc import Callable

import torch
from torch import Tensor

from concont.core.evidence import find_unlabeled
from concont.ranks.tensors import divide_over_ranks


def partial_cross_entropy(logits: Tensor, candidates: Tensor) -> Tensor:
    """Minus the logarithm of the probability that falls on the candidate set, a row (Eq. 1 [1]_).

    With f = softmax(logits) and the candidate set y, a row of 0 and 1::

        loss = -log(sum_j y_j f_j)

    Computed as a difference of log-sums, so that neither certainty nor underflow costs accuracy.

    Parameters
    ----------
    logits : Tensor (B, C), float
        Scores of the classes.
    candidates : Tensor (B, C), bool or float
        The candidate sets, at least one class a row; or the evidence for each class, from 0 to 1,
        in the place of y.

    Returns
    -------
    Tensor (B,)
        Exactly 0, with gradient 0, where every class is a candidate: an unlabelled row.

    References
    ----------
    .. [1] "Controller-Guided Partial Label Consistency Regularization with Unlabeled Data",
       AAAI 2024, https://doi.org/10.1609/aaai.v38i14.29484

    Examples
    --------
    >>> import torch
    >>> from concont import partial_cross_entropy
    >>> sets = torch.tensor([[True, False, False], [True, True, False], [True, True, True]])
    >>> partial_cross_entropy(torch.zeros(3, 3), sets)
    tensor([1.0986, 0.4055, 0.0000])
    """
    evidence = candidates.to(logits.dtype)
    everything = find_unlabeled(candidates)  # (B,)
    inside = (logits + evidence.log()).logsumexp(dim=1)  # a class of weight 0 adds nothing
    # An unlabelled row has nothing outside; it keeps its logits so that no gradient is 0 * inf.
    rest = torch.where(everything[:, None], 0.0, torch.log1p(-evidence))
    outside = (logits + rest).logsumexp(dim=1)
    # log(in + out) - log(in) = log(1 + out/in): no rounding below 0 near certainty.
    loss = torch.logaddexp(outside - inside, torch.zeros_like(inside))
    return torch.where(everything, 0.0, loss)


def uniform_cross_entropy(logits: Tensor, candidates: Tensor) -> Tensor:
    """Cross-entropy to the uniform distribution over the candidates (Table 4, w/o L_part), (B,).

    0 where every class is a candidate: only partial rows carry it. With evidence from 0 to 1 in the
    place of sets, to that distribution.
    """
    unlabeled = find_unlabeled(candidates)
    return torch.where(unlabeled, 0.0, uniform_cross_entropy_of_all(logits, candidates))


def uniform_cross_entropy_of_all(logits: Tensor, candidates: Tensor) -> Tensor:
    """The same with unlabelled rows, which it pulls to the uniform distribution, (B,)."""
    return soft_cross_entropy(logits, uniform_over(candidates, logits.dtype))


def uniform_over(candidates: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """The distribution (B, C) that gives every candidate the same."""
    return candidates / candidates.sum(dim=1, keepdim=True).to(dtype)


def consistency_loss(logits: Tensor, target: Tensor, confident: Tensor) -> Tensor:
    """Eq. 3: divergence of the strong view from its target, on confident rows only (B,).

    logits (B, C) of the strong view; target (B, C) a distribution without gradient; confident
    (B,) bool. With a one-hot target the divergence is the cross-entropy.
    """
    log_probs = logits.log_softmax(dim=1)
    entropy = torch.special.entr(target).sum(dim=1)
    divergence = -(target * log_probs).sum(dim=1) - entropy
    return torch.where(confident, divergence, 0.0)


def contrastive_loss(
    queries: Tensor, keys: Tensor, positive: Tensor, negative: Tensor, temperature: float
) -> Tensor:
    """How far each query is from its positive keys, compared with the negative ones (Eq. 4 [1]_).

    For a query z with positives P, negatives N and temperature t::

        loss = -mean_{p in P} log( exp(z.p / t) / sum_{k in P or N} exp(z.k / t) )

    A key that is neither positive nor negative takes no part.

    Parameters
    ----------
    queries : Tensor (B, D), float
        Rows of length 1: one an image, also called anchors.
    keys : Tensor (K, D), float
        Rows of length 1: what queries are compared with.
    positive, negative : Tensor (B, K), bool
        Which keys pull a query and which push it, disjoint: see `contrast_masks`.
    temperature : float
        The smaller, the more the nearest keys count.

    Returns
    -------
    Tensor (B,)
        0 for a query without positives.

    References
    ----------
    .. [1] "Controller-Guided Partial Label Consistency Regularization with Unlabeled Data",
       AAAI 2024, https://doi.org/10.1609/aaai.v38i14.29484

    Examples
    --------
    >>> import torch
    >>> from concont import contrastive_loss
    >>> keys, positive = torch.eye(2), torch.tensor([[True, False]])
    >>> contrastive_loss(keys[:1], keys, positive, ~positive, temperature=0.5)
    tensor([0.1269])
    """
    similarity = queries @ keys.T / temperature  # (B, K)
    n_positive = positive.sum(dim=1)  # (B,)
    none = n_positive == 0
    # An anchor without positives keeps all pairs: its finite value is replaced by 0 below.
    taking_part = positive | negative | none[:, None]
    log_total = similarity.masked_fill(~taking_part, -torch.inf).logsumexp(dim=1)
    mean_positive = (similarity * positive).sum(dim=1) / n_positive.clamp(min=1)
    return torch.where(none, 0.0, log_total - mean_positive)


def soft_cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    """Cross-entropy to a distribution (B, C) without gradient, (B,)."""
    return -(target * logits.log_softmax(dim=1)).sum(dim=1)


def outside_cross_entropy(logits: Tensor, candidates: Tensor) -> Tensor:
    """`-log(1 - p)` summed over the labels outside the candidate set, (B,); DPLL's first term."""
    log_probs = logits.log_softmax(dim=1)
    likeliest = torch.zeros_like(candidates).scatter(1, logits.argmax(dim=1, keepdim=True), True)
    # 1 - p of the likeliest label is what the others have, summed: no rounding of p to 1.
    others = log_probs.masked_fill(likeliest, -torch.inf).logsumexp(dim=1, keepdim=True)
    remains = torch.log1p(-log_probs.exp().masked_fill(likeliest, 0.0))
    log_not = torch.where(likeliest, others, remains)  # (B, C)
    return -(log_not.masked_fill(candidates, 0.0)).sum(dim=1)


def inside_softmax(logits: Tensor, candidates: Tensor) -> Tensor:
    """The distribution (B, C) that the scores give the candidates alone."""
    return logits.masked_fill(~candidates, -torch.inf).softmax(dim=1)


def mean_over_batch(rows: Tensor, candidates: Tensor) -> Tensor:
    """The mean over every row; the unlabelled ones count in the denominator."""
    return rows.mean()


def mean_over_partial(rows: Tensor, candidates: Tensor) -> Tensor:
    """The sum over all rows, divided by how many of them have a set; 0 where none has."""
    return divide_over_ranks(rows.sum(), (~find_unlabeled(candidates)).sum())


PART_MEANS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "batch": mean_over_batch,
    "partial": mean_over_partial,
}
