"""Slow versions written from the paper: loops, float64 Python numbers, no tensors."""

import math


def softmax(logits):
    top = max(logits)
    weights = [math.exp(x - top) for x in logits]
    return [w / sum(weights) for w in weights]


def partial_cross_entropy(logits, candidates):
    losses = []
    for row, members in zip(logits, candidates, strict=True):
        if all(members):
            losses.append(0.0)
            continue
        top = max(x for x, m in zip(row, members, strict=True) if m)
        inside = sum(math.exp(x - top) for x, m in zip(row, members, strict=True) if m)
        peak = max(row)
        everything = sum(math.exp(x - peak) for x in row)
        losses.append((peak + math.log(everything)) - (top + math.log(inside)))
    return losses


def uniform_cross_entropy(logits, candidates):
    losses = []
    for row, members in zip(logits, candidates, strict=True):
        if all(members):
            losses.append(0.0)
            continue
        peak = max(row)
        total = peak + math.log(sum(math.exp(x - peak) for x in row))
        own = [total - x for x, m in zip(row, members, strict=True) if m]
        losses.append(sum(own) / len(own))
    return losses


def consistency(logits, target, confident):
    losses = []
    for row, goal, sure in zip(logits, target, confident, strict=True):
        peak = max(row)
        total = peak + math.log(sum(math.exp(x - peak) for x in row))
        divergence = sum(
            t * (math.log(t) - (x - total)) for x, t in zip(row, goal, strict=True) if t
        )
        losses.append(divergence if sure else 0.0)
    return losses


def partial_confidence(probs, candidates, weights):
    scores, labels = [], []
    for row, members in zip(probs, candidates, strict=True):
        classes, count = len(row), sum(members)
        inside = [p if m else 0.0 for p, m in zip(row, members, strict=True)]
        mass = sum(inside)
        ranked = sorted(inside, reverse=True)
        p1 = 1 / count
        p2 = (ranked[0] - ranked[1]) / mass if mass > 0 else 0.0
        p3 = (1 - mass) / (classes - count) if count < classes else 0.0
        scores.append(weights[0] * p1 + weights[1] * p2 + weights[2] * p3)
        best = max(p for p, m in zip(row, members, strict=True) if m)
        labels.append(next(j for j in range(classes) if members[j] and row[j] == best))
    return scores, labels


def thresholds(tau, labels, confident, lower, upper, rate):
    counts = [0] * len(tau)
    for label, sure in zip(labels, confident, strict=True):
        counts[label] += bool(sure)
    total = sum(counts)
    if total == 0:
        return list(tau)
    mean = total / len(tau)
    moved = [t - rate * (mean - s) / total for t, s in zip(tau, counts, strict=True)]
    return [min(max(t, lower), upper) for t in moved]


def contrast(strategy, labels, confident, key_labels, key_confident, key_valid, own_key):
    """The sets of positive and of negative columns of each anchor."""
    positives, negatives = [], []
    for i, label in enumerate(labels):
        positive, negative = set(), set()
        for k, key_label in enumerate(key_labels):
            if not key_valid[k]:
                continue
            own, same = k == own_key[i], key_label == label
            both = confident[i] and key_confident[k]
            if strategy == "ours":
                if own or (same and both):
                    positive.add(k)
                elif not same:
                    negative.add(k)
            elif strategy == "hcp":
                (positive if own or (same and both) else negative).add(k)
            elif strategy == "hcpn":
                if both:
                    (positive if same else negative).add(k)
            elif strategy in ("supcon", "true"):
                (positive if own or same else negative).add(k)
            elif strategy == "unsupcon":
                (positive if own else negative).add(k)
        positives.append(positive)
        negatives.append(negative)
    return positives, negatives


def contrastive(queries, keys, positive, negative, temperature):
    losses = []
    for q, pos, neg in zip(queries, positive, negative, strict=True):
        if not any(pos):
            losses.append(0.0)
            continue
        score = [sum(a * b for a, b in zip(q, k, strict=True)) / temperature for k in keys]
        peak = max(score)
        taking_part = [s for s, p, n in zip(score, pos, neg, strict=True) if p or n]
        total = peak + math.log(sum(math.exp(s - peak) for s in taking_part))
        own = [total - s for s, p in zip(score, pos, strict=True) if p]
        losses.append(sum(own) / len(own))
    return losses
