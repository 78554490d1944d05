"""Which keys pull an anchor and which push it: one function a strategy (Table 6)."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

Masks = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Pairs:
    """The relations between anchors and keys that a strategy chooses from, each (B, K) bool."""

    same: Tensor  # equal pseudo-label
    both_confident: Tensor
    own: Tensor  # the key is the anchor's own other view


def ours(pairs: Pairs) -> Masks:
    """Confident keys of the anchor's class pull, other classes push, the rest is left out."""
    return (pairs.same & pairs.both_confident) | pairs.own, ~pairs.same & ~pairs.own


def hcp(pairs: Pairs) -> Masks:
    """High-confidence positives: as ours, and every other key pushes."""
    positive, _ = ours(pairs)
    return positive, ~positive


def hcpn(pairs: Pairs) -> Masks:
    """High-confidence positives and negatives: the unconfident take no part on either side."""
    return pairs.same & pairs.both_confident, ~pairs.same & pairs.both_confident


def supcon(pairs: Pairs) -> Masks:
    """Equal label pulls, other label pushes, whatever the confidence."""
    positive = pairs.same | pairs.own
    return positive, ~positive


def unsupcon(pairs: Pairs) -> Masks:
    """Only the anchor's own key pulls, every other pushes."""
    return pairs.own, ~pairs.own


# `true` is SupCon on true labels: the caller gives those in place of the pseudo-labels.
SELECTIONS: dict[str, Callable[[Pairs], Masks]] = {
    "ours": ours,
    "hcp": hcp,
    "hcpn": hcpn,
    "supcon": supcon,
    "unsupcon": unsupcon,
    "true": supcon,
}


def contrast_masks(
    strategy: str,
    pseudo_labels: Tensor,
    confident: Tensor,
    key_labels: Tensor,
    key_confident: Tensor,
    key_valid: Tensor,
    own_key: Tensor,
) -> Masks:
    """Which keys pull each anchor and which push it: P and N in Eq. 4 [1]_.

    With the paper's strategy, `ours`, confident keys with the anchor's pseudo-label pull if the
    anchor is confident, its own key always does, keys with another pseudo-label push, and the
    rest takes no part. The others are those of the paper's Table 6.

    Parameters
    ----------
    strategy : {"ours", "hcp", "hcpn", "supcon", "unsupcon", "true"}
        `hcp`: as ours, and the rest pushes, too. `hcpn`: only the confident take part. `supcon`:
        equal labels pull and others push, confident or not. `unsupcon`: the own key pulls, all
        others push. `true`: `supcon` for true labels given in place of pseudo-labels.
    pseudo_labels, confident : Tensor (B,)
        Of the anchors: their labels, and whether they are sure of them.
    key_labels, key_confident : Tensor (K,)
        The same of the keys.
    key_valid : Tensor (K,), bool
        An invalid key, such as an empty place in a queue, is in neither mask.
    own_key : Tensor (B,)
        The column of each anchor's own key: another view of the same image.

    Returns
    -------
    positive, negative : Tensor (B, K), bool
        Disjoint.

    References
    ----------
    .. [1] "Controller-Guided Partial Label Consistency Regularization with Unlabeled Data",
       AAAI 2024, https://doi.org/10.1609/aaai.v38i14.29484

    Examples
    --------
    >>> import torch
    >>> from concont import contrast_masks
    >>> labels, sure = torch.tensor([0, 0, 0, 1]), torch.tensor([True, True, False, True])
    >>> own, valid = torch.arange(4), torch.ones(4, dtype=torch.bool)
    >>> pulls, pushes = contrast_masks("ours", labels, sure, labels, sure, valid, own)
    >>> pulls[0].tolist(), pushes[0].tolist()
    ([True, True, False, False], [False, False, False, True])
    """
    if strategy not in SELECTIONS:
        raise ValueError(f"unknown selection {strategy!r}; there are {', '.join(SELECTIONS)}")
    columns = torch.arange(len(key_labels), device=key_labels.device)
    pairs = Pairs(
        same=pseudo_labels[:, None] == key_labels[None, :],
        both_confident=confident[:, None] & key_confident[None, :],
        own=own_key[:, None] == columns[None, :],
    )
    positive, negative = SELECTIONS[strategy](pairs)
    return positive & key_valid[None, :], negative & key_valid[None, :]


def without(column: Tensor, masks: Masks) -> Masks:
    """The masks but for one column (B,) an anchor: itself, where anchors are keys too."""
    positive, negative = masks
    other = torch.arange(positive.shape[1], device=column.device) != column[:, None]
    return positive & other, negative & other
