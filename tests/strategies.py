"""Random problems for the pure functions."""

import torch
from hypothesis import strategies as st

seeds = st.integers(0, 2**31 - 1)
scales = st.sampled_from([0.0, 0.1, 1.0, 10.0, 300.0])


@st.composite
def logit_problems(draw):
    """Logits (B, C) in float64, from flat to extreme, and candidate sets without an empty one."""
    rows, classes = draw(st.integers(1, 7)), draw(st.integers(2, 12))
    generator = torch.Generator().manual_seed(draw(seeds))
    logits = torch.randn(rows, classes, generator=generator, dtype=torch.float64) * draw(scales)
    share = draw(st.sampled_from([0.0, 0.3, 0.7, 1.0]))
    candidates = torch.rand(rows, classes, generator=generator) < share
    lone = torch.randint(classes, (rows,), generator=generator)
    candidates[torch.arange(rows), lone] = True
    if draw(st.booleans()):
        candidates[0] = True  # an unlabelled row
    return logits, candidates


@st.composite
def weighted_problems(draw):
    """The same with weights of the candidates: the largest of a row 1, all 1 if unlabelled."""
    logits, candidates = draw(logit_problems())
    generator = torch.Generator().manual_seed(draw(seeds))
    votes = torch.randint(1, 6, candidates.shape, generator=generator) * candidates
    votes[candidates.all(dim=1)] = 1
    return logits, candidates, votes / votes.amax(dim=1, keepdim=True).double()


@st.composite
def contrast_problems(draw):
    """Anchors and keys with labels, confidence, validity and own keys."""
    anchors, keys = draw(st.integers(1, 6)), draw(st.integers(6, 20))
    generator = torch.Generator().manual_seed(draw(seeds))

    def labels(n):
        return torch.randint(4, (n,), generator=generator)

    def bits(n, share):
        return torch.rand(n, generator=generator) < share

    share = draw(st.sampled_from([0.0, 0.5, 1.0]))
    return {
        "pseudo_labels": labels(anchors),
        "confident": bits(anchors, share),
        "key_labels": labels(keys),
        "key_confident": bits(keys, share),
        "key_valid": bits(keys, draw(st.sampled_from([0.5, 1.0]))),
        "own_key": torch.randperm(keys, generator=generator)[:anchors],
    }
