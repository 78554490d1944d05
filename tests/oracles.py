"""Slow versions written from the paper: loops, float64 Python numbers, no tensors."""

import math


def softmax(logits):
    top = max(logits)
    weights = [math.exp(x - top) for x in logits]
    return [w / sum(weights) for w in weights]


def log_sum(values):
    top = max(values)
    return top + math.log(sum(math.exp(x - top) for x in values))


def log_softmax(logits):
    return [x - log_sum(logits) for x in logits]


def mean(values):
    return sum(values) / len(values)


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


def evidence(candidates, weights, strength):
    return [
        [w**strength if m else 0.0 for m, w in zip(members, row, strict=True)]
        for members, row in zip(candidates, weights, strict=True)
    ]


def weighed_cross_entropy(logits, weights):
    """-log sum_j u_j f_j; 0 where every u is 1."""
    losses = []
    for row, u in zip(logits, weights, strict=True):
        if all(x == 1 for x in u):
            losses.append(0.0)
            continue
        inside = log_sum([z + math.log(x) for z, x in zip(row, u, strict=True) if x > 0])
        losses.append(log_sum(row) - inside)
    return losses


def weighed_confidence(probs, candidates, weights, u):
    """Eq. 2 with u in the place of y, but for its first and third term."""
    scores, labels = [], []
    for row, members, likely in zip(probs, candidates, u, strict=True):
        classes, count = len(row), sum(members)
        weighed = [p * x for p, x in zip(row, likely, strict=True)]
        ranked = sorted(weighed, reverse=True)
        outside = 1 - sum(p for p, m in zip(row, members, strict=True) if m)
        p2 = (ranked[0] - ranked[1]) / sum(weighed) if sum(weighed) > 0 else 0.0
        p3 = outside / (classes - count) if count < classes else 0.0
        scores.append(weights[0] / count + weights[1] * p2 + weights[2] * p3)
        best = max(w for w, x in zip(weighed, likely, strict=True) if x > 0)
        labels.append(next(j for j in range(classes) if likely[j] > 0 and weighed[j] == best))
    return scores, labels


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


def soft_cross_entropy(logits, target):
    losses = []
    for row, goal in zip(logits, target, strict=True):
        logs = log_softmax(row)
        losses.append(-sum(t * x for t, x in zip(goal, logs, strict=True)))
    return losses


def outside_cross_entropy(logits, candidates):
    """DPLL's first term: 1 - p of a label is what all other labels have."""
    losses = []
    for row, members in zip(logits, candidates, strict=True):
        loss = 0.0
        for j, member in enumerate(members):
            if not member:
                others = [x for k, x in enumerate(row) if k != j]
                loss -= log_sum(others) - log_sum(row)
        losses.append(loss)
    return losses


def inside_softmax(logits, candidates):
    """y_j p_j over the sum of it; the exponent is taken relative to the largest candidate."""
    rows = []
    for row, members in zip(logits, candidates, strict=True):
        top = max(x for x, m in zip(row, members, strict=True) if m)
        weights = [math.exp(x - top) if m else 0.0 for x, m in zip(row, members, strict=True)]
        rows.append([w / sum(weights) for w in weights])
    return rows


def lws_loss(logits, weights, candidates, beta):
    losses = []
    for row, own, members in zip(logits, weights, candidates, strict=True):
        loss = 0.0
        for g, w, member in zip(row, own, members, strict=True):
            if member:
                loss += w / (1 + math.exp(g))  # sigmoid(-g)
            else:
                loss += beta * w / (1 + math.exp(-g))
        losses.append(loss)
    return losses


def lws_weights(logits, candidates):
    rows = []
    for row, members in zip(logits, candidates, strict=True):
        p = softmax(row)
        inside = sum(x for x, m in zip(p, members, strict=True) if m)
        outside = sum(x for x, m in zip(p, members, strict=True) if not m)
        pairs = zip(p, members, strict=True)
        rows.append([x / inside if m else x / outside for x, m in pairs])
    return rows


def divergence(target, logits):
    """KL(target || softmax of the logits), a row."""
    return consistency(logits, target, [True] * len(target))


def conformal(views, candidates):
    """DPLL's z: y_j times the geometric mean of what the views give j, made to sum to 1."""
    rows = []
    for i, members in enumerate(candidates):
        logs = [log_softmax(view[i]) for view in views]
        product = [
            math.exp(sum(log[j] for log in logs) / len(views)) if member else 0.0
            for j, member in enumerate(members)
        ]
        rows.append([x / sum(product) for x in product])
    return rows


def pico_confidence(before, queries, prototypes, candidates, phi):
    rows = []
    for own, q, members in zip(before, queries, candidates, strict=True):
        score = softmax([sum(a * b for a, b in zip(q, mu, strict=True)) for mu in prototypes])
        inside = [s * m for s, m in zip(score, members, strict=True)]
        best = inside.index(max(inside))
        rows.append([phi * c + (1 - phi) * (j == best) for j, c in enumerate(own)])
    return rows


def pico_contrast(queries, keys, labels, queue, queue_labels, temperature, first_epoch):
    """A value a query: MoCo's in the first epoch, then SupCon's over queries, keys and queue."""
    filled = [(z, label) for z, label in zip(queue, queue_labels, strict=True) if label != -1]
    losses = []
    for i, q in enumerate(queries):
        if first_epoch:
            pool = [(keys[i], True), *((z, False) for z, _ in filled)]
        else:
            others = [(z, labels[k]) for k, z in enumerate(queries) if k != i]
            others += list(zip(keys, labels, strict=True)) + filled
            pool = [(z, label == labels[i]) for z, label in others]
        score = [sum(a * b for a, b in zip(q, z, strict=True)) / temperature for z, _ in pool]
        total = log_sum(score)
        own = [total - s for s, (_, positive) in zip(score, pool, strict=True) if positive]
        losses.append(mean(own))
    return losses


def prototypes(before, queries, labels, momentum):
    """One query after the other moves its class's prototype; in the end all are made unit."""
    now = [list(row) for row in before]
    for q, label in zip(queries, labels, strict=True):
        own = zip(now[label], q, strict=True)
        now[label] = [momentum * a + (1 - momentum) * b for a, b in own]
    lengths = [math.sqrt(sum(x * x for x in row)) for row in now]
    return [[x / n if n else 0.0 for x in row] for row, n in zip(now, lengths, strict=True)]


def alignment(probs, means):
    """ReMixMatch: p times the uniform target over the mean of the last batches' means."""
    classes = len(probs[0])
    running = [mean([row[j] for row in means]) for j in range(classes)]
    rows = []
    for row in probs:
        scaled = [p * (1 / classes) / r for p, r in zip(row, running, strict=True)]
        rows.append([x / sum(scaled) for x in scaled])
    return rows


def curriculum(tau, passed, rows, classes):
    """FlexMatch's thresholds; `passed` is the last label that passed, of those rows that have."""
    counts = [sum(label == j for label in passed.values()) for j in range(classes)]
    largest = max(*counts, rows - len(passed))
    learned = [count / largest for count in counts]
    return [tau * b / (2 - b) for b in learned]
