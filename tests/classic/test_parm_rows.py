import numpy as np
import pytest
import torch

from classic.programmes import Oracle, problem
from concont.classic.parm import PARMClassifier, UninformativeWarning
from concont.classic.parm_rows import spread_labels


@pytest.mark.parametrize("alpha", [0.0, 0.5, 0.95, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_labels_spread_as_the_loops_do(seed, alpha):
    x, sets, _, _ = problem(seed, 60, 0, classes=5, width=6, extra=0.5, noise=2.0)
    unit = torch.nn.functional.normalize(torch.from_numpy(x))
    found = spread_labels(unit, torch.from_numpy(sets).double(), 8, alpha).numpy()
    slow = Oracle(alpha=alpha).spread(list(unit.numpy()), sets)
    assert found == pytest.approx(np.array(slow), abs=1e-12)
    assert (found[~sets] == 0).all()


@pytest.mark.parametrize(
    ("size", "dtype"),
    [(1e-25, "float32"), (1e20, "float32"), (1e-120, "float64"), (1e200, "float64")],
)
def test_features_whose_squares_are_no_numbers_are_refused(size, dtype):
    x, sets, _, _ = problem(0)
    with pytest.raises(ValueError, match=f"the largest feature is .*in {dtype}"):
        PARMClassifier(device="cpu").fit((size * x).astype(dtype), sets)
    assert (PARMClassifier(device="cpu").fit(1e-9 * x, sets).coef_ != 0).any()
    with pytest.warns(UninformativeWarning):
        PARMClassifier(device="cpu").fit(0 * x, sets)
