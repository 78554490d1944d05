from collections import Counter
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from concont.tables.agreement import measure_agreement, measure_alpha
from concont.tables.votes import Votes, choose_candidates, count_votes

N, CLASSES, WHO = 6, ("cat", "dog", "fox"), ("Ann", "Bob", "Cid", "Dee")
ballots = st.tuples(
    st.integers(0, N - 1), st.integers(0, len(WHO) - 1), st.integers(0, len(CLASSES) - 1)
)


def make_votes(triples):
    image, annotator, label = np.array(sorted(set(triples))).T
    images = pa.array([f"{k}.png" for k in range(N)])
    return Votes(images, WHO, CLASSES, image, annotator, label, np.arange(len(image)))


def measure(triples, min_votes=1):
    votes = make_votes(triples)
    return measure_agreement(votes, choose_candidates(count_votes(votes), min_votes))


def plain_alpha(by_image):
    """From Krippendorff's definition, pair by pair."""
    groups = [labels for labels in by_image.values() if len(labels) >= 2]
    values = [label for labels in groups for label in labels]
    observed = sum(
        sum(a != b for i, a in enumerate(labels) for j, b in enumerate(labels) if i != j)
        / (len(labels) - 1)
        for labels in groups
    )
    pairs = [(i, j) for i in range(len(values)) for j in range(len(values)) if i != j]
    expected = sum(values[i] != values[j] for i, j in pairs) / max(1, len(values) - 1)
    return None if expected == 0 else 1 - observed / expected


@given(st.lists(ballots, min_size=1, max_size=50))
def test_the_figures_are_those_of_plain_loops(triples):
    found, unique = measure(triples), sorted(set(triples))
    by_image = {k: [label for image, _, label in unique if image == k] for k in range(N)}
    several = [labels for labels in by_image.values() if len(labels) >= 2]
    voted = [labels for labels in by_image.values() if labels]
    assert (found.images, found.voted, found.votes) == (N, len(voted), len(unique))
    assert found.set_size == pytest.approx(np.mean([len(set(labels)) for labels in voted]))
    if several:
        share = np.mean([len(set(labels)) == 1 for labels in several])
        assert found.unanimous == pytest.approx(share)
    else:
        assert found.unanimous is None
    assert found.alpha == pytest.approx(plain_alpha(by_image), abs=1e-12)

    expected = {}
    for a, b in combinations(range(len(CLASSES)), 2):
        both = sum({a, b} <= set(labels) for labels in voted)
        either = sum(bool({a, b} & set(labels)) for labels in voted)
        if both:
            expected[CLASSES[a], CLASSES[b]] = (both, pytest.approx(both / either))
    assert {(c.first, c.second): (c.images, c.share) for c in found.confusions} == expected
    counts = [c.images for c in found.confusions]
    assert counts == sorted(counts, reverse=True)


@given(st.lists(ballots, min_size=1, max_size=50))
def test_each_annotator_is_compared_with_the_others(triples):
    unique, expected = sorted(set(triples)), {}
    for who, name in enumerate(WHO):
        compared = agreeing = 0
        for image, annotator, label in unique:
            if annotator == who:
                others = Counter(k for i, a, k in unique if i == image and a != who)
                if others:
                    compared += 1
                    agreeing += others[label] == max(others.values())
        if compared:
            expected[name] = (compared, pytest.approx(agreeing / compared))
    most = max((n for n, _ in expected.values()), default=0)
    if most >= 5:  # then those with a vote or two are left out
        expected = {name: pair for name, pair in expected.items() if pair[0] >= 5}
    found = measure(triples).apart
    assert {who.name: (who.votes, who.agreement) for who in found} == expected
    shares = [who.agreement for who in found]
    assert shares == sorted(shares)


def test_the_set_size_is_that_of_the_sets_that_are_made():
    triples = [(0, 0, 0), (0, 1, 0), (0, 2, 1), (1, 0, 0), (1, 1, 1)]
    assert measure(triples, min_votes=1).set_size == 2
    assert measure(triples, min_votes=2).set_size == 1.5  # nobody has two on the second image


def test_alpha_of_the_example_in_its_description():
    """K. Krippendorff, Computing Krippendorff's Alpha-Reliability, 2011: C, nominal, 0.743."""
    rows = ["123321412...", "1233224125.3", ".3332342251.", "12332441251."]  # a coder each
    counts = np.zeros((12, 5), int)
    for row in rows:
        for unit, value in enumerate(row):
            if value != ".":
                counts[unit, int(value) - 1] += 1
    assert measure_alpha(sparse.csr_array(counts)) == pytest.approx(0.743, abs=5e-4)


@pytest.mark.parametrize("seed", range(5))
def test_alpha_of_more_than_the_library_can_hold_is_the_same(seed):
    stream = np.random.RandomState(seed)
    counts = sparse.csr_array(stream.poisson(0.6, (40, 6)))
    by_library = measure_alpha(counts)
    assert measure_alpha(counts, room=0) == pytest.approx(by_library, abs=1e-12)


@pytest.mark.parametrize("counts", [[[1, 0]], [[3, 0], [2, 0]], [[0, 0]]])
def test_alpha_without_a_value_is_none(counts):
    assert measure_alpha(sparse.csr_array(np.array(counts))) is None
