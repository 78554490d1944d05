import os
import random
from contextlib import ExitStack

import numpy as np
import pytest
import torch

import concont
from concont.errors import UsageError
from concont.global_state import kept_global_state


def describe():
    return (
        random.getstate(),
        [part.tolist() if isinstance(part, np.ndarray) else part for part in np.random.get_state()],
        torch.get_rng_state().tolist(),
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
        torch.backends.cudnn.benchmark,
        torch.backends.cudnn.deterministic,
        os.environ.get("CUBLAS_WORKSPACE_CONFIG"),
    )


def change():
    random.seed(5)
    np.random.seed(5)
    torch.manual_seed(5)
    torch.use_deterministic_algorithms(not torch.are_deterministic_algorithms_enabled())
    torch.backends.cudnn.benchmark = not torch.backends.cudnn.benchmark
    torch.backends.cudnn.deterministic = not torch.backends.cudnn.deterministic
    os.environ["CUBLAS_WORKSPACE_CONFIG"] = "own"


def test_everything_is_as_it_was():
    before = describe()
    with kept_global_state():
        change()
        assert all(now != was for now, was in zip(describe(), before, strict=True) if was)
    assert describe() == before


def test_also_after_a_failure_and_where_two_overlap():
    before = describe()
    first, second = ExitStack(), ExitStack()
    first.enter_context(kept_global_state())
    change()
    second.enter_context(kept_global_state())
    first.close()  # the second is still at work
    assert describe() != before
    second.close()
    assert describe() == before
    with pytest.raises(ValueError, match="in between"), kept_global_state():
        change()
        raise ValueError("in between")
    assert describe() == before


@pytest.mark.parametrize("fails", [False, True])
def test_a_training_leaves_no_trace(tmp_path, toy_arrays, toy_config, fails):
    toy_config["train"]["deterministic"] = True
    before = describe()
    concont.train(toy_config, data=toy_arrays, out=tmp_path / "run")
    if fails:
        with pytest.raises(UsageError, match="not empty"):
            concont.train(toy_config, data=toy_arrays, out=tmp_path / "run")
    assert describe() == before
