import numpy as np
import pytest

from concont.answers import neighbours as module
from concont.answers.neighbours import NEIGHBOURS, measure_disagreement, to_unit_rows


def draw(n, seed=0, dim=5, classes=3):
    stream = np.random.RandomState(seed)
    rows = to_unit_rows(stream.randn(n, dim).astype(np.float32))
    return rows, stream.randint(classes, size=n)


def count_slowly(rows, labels, k):
    """Sort all others by their angle, one image after the other."""
    shares = []
    for i, row in enumerate(rows):
        angles = [(-float(row @ other), j) for j, other in enumerate(rows) if j != i]
        nearest = [j for _, j in sorted(angles)[:k]]
        shares.append(sum(labels[j] != labels[i] for j in nearest) / k)
    return shares


@pytest.mark.parametrize("seed", range(4))
def test_the_share_of_neighbours_with_another_label(seed):
    rows, labels = draw(60, seed)
    expected = count_slowly(rows, labels, NEIGHBOURS)
    assert measure_disagreement(rows, labels) == pytest.approx(expected, abs=1e-6)


def test_of_few_images_all_others_are_neighbours():
    rows, labels = draw(4)
    assert measure_disagreement(rows, labels) == pytest.approx(count_slowly(rows, labels, 3))
    assert measure_disagreement(rows[:1], labels[:1]).tolist() == [0]


def test_an_image_is_no_neighbour_of_itself_even_among_copies():
    rows = np.repeat(draw(1)[0], 30, axis=0)
    assert measure_disagreement(rows, np.zeros(30, np.int64)).tolist() == [0] * 30
    labels = np.arange(30)  # all different: all neighbours disagree
    assert measure_disagreement(rows, labels).tolist() == [1] * 30


def test_very_many_images_are_compared_with_a_sample(monkeypatch):
    rows, labels = draw(400, classes=2)
    labels = (rows[:, 0] > 0).astype(np.int64)  # neighbours mostly agree
    whole = measure_disagreement(rows, labels)
    monkeypatch.setattr(module, "MOST_COMPARED", 200)
    sampled = measure_disagreement(rows, labels)
    assert np.corrcoef(whole, sampled)[0, 1] > 0.7
    assert not np.array_equal(whole, sampled)


def test_rows_get_length_one_and_zeros_stay():
    rows = to_unit_rows(np.array([[3, 4], [0, 0]], np.float32))
    assert rows.tolist() == [[pytest.approx(0.6), pytest.approx(0.8)], [0, 0]]
