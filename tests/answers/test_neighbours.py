import numpy as np
import pytest

from concont.answers import neighbours as module
from concont.answers.neighbours import NEIGHBOURS, count_neighbours, to_unit_rows


def draw(n, seed=0, dim=5, classes=3):
    stream = np.random.RandomState(seed)
    rows = to_unit_rows(stream.randn(n, dim).astype(np.float32))
    return rows, stream.randint(classes, size=n)


def count_slowly(rows, labels, k, classes=3):
    """Sort all others by their angle, one image after the other."""
    shares = np.zeros((len(rows), classes))
    for i, row in enumerate(rows):
        angles = [(-float(row @ other), j) for j, other in enumerate(rows) if j != i]
        for _, j in sorted(angles)[:k]:
            shares[i, labels[j]] += 1 / k
    return shares


@pytest.mark.parametrize("seed", range(4))
def test_the_share_of_each_class_among_the_neighbours(seed):
    rows, labels = draw(60, seed)
    expected = count_slowly(rows, labels, NEIGHBOURS)
    assert count_neighbours(rows, labels, 3) == pytest.approx(expected, abs=1e-6)


def test_of_few_images_all_others_are_neighbours():
    rows, labels = draw(4)
    found = count_neighbours(rows, labels, 3)
    assert found == pytest.approx(count_slowly(rows, labels, 3), abs=1e-6)
    assert count_neighbours(rows[:1], labels[:1], 3).tolist() == [[0, 0, 0]]


def test_an_image_is_no_neighbour_of_itself_even_among_copies():
    rows = np.repeat(draw(1)[0], 30, axis=0)
    labels = np.arange(30)  # all different
    found = count_neighbours(rows, labels, 30)
    assert found[labels, labels].tolist() == [0] * 30
    assert found.sum(axis=1) == pytest.approx(np.ones(30))


def test_very_many_images_are_compared_with_a_sample(monkeypatch):
    rows, labels = draw(400, classes=2)
    labels = (rows[:, 0] > 0).astype(np.int64)  # neighbours mostly agree
    whole = count_neighbours(rows, labels, 2)[:, 0]
    monkeypatch.setattr(module, "MOST_COMPARED", 200)
    sampled = count_neighbours(rows, labels, 2)[:, 0]
    assert np.corrcoef(whole, sampled)[0, 1] > 0.7
    assert not np.array_equal(whole, sampled)


def test_rows_get_length_one_and_zeros_stay():
    rows = to_unit_rows(np.array([[3, 4], [0, 0]], np.float32))
    assert rows.tolist() == [[pytest.approx(0.6), pytest.approx(0.8)], [0, 0]]
