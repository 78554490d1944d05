"""Several processes that train as one: the real thing, with gloo on a CPU."""

import os
import subprocess
import sys

import numpy as np
import pytest
import torch

import ranked_steps
from processes import ENVIRONMENT, SECONDS

pytestmark = pytest.mark.slow
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone"]


def torchrun(n, *words, options=(), **environment):
    """The command on so many ranks, to its end."""
    path = os.pathsep.join(sys.path)
    return subprocess.run(
        [*TORCHRUN, "--nproc-per-node", str(n), *options, *map(str, words)],
        env={**ENVIRONMENT, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )


@pytest.fixture
def jobs(toy_config):
    """Settings by name: every method that has a network."""
    toy_config["data"]["unlabeled"] = True
    toy_config["model"]["width"] = 4
    return {
        name: {**toy_config, "method": method}
        for name, method in ranked_steps.METHODS.items()
    }


def differences(found, expected, tolerance):
    """Names of the tensors that are not near."""
    assert found.keys() == expected.keys()
    near = {"rtol": tolerance, "atol": tolerance}
    return [
        name
        for name, tensor in expected.items()
        if not torch.allclose(found[name].double(), tensor.double(), **near, equal_nan=True)
    ]


def test_two_ranks_take_the_steps_of_one_process_with_every_method(tmp_path, toy_arrays, jobs):
    torch.save((jobs, toy_arrays), tmp_path / "jobs")
    done = torchrun(2, ranked_steps.__file__, tmp_path / "jobs", tmp_path / "out")
    assert done.returncode == 0, done.stderr[-6000:]
    first, second = (torch.load(tmp_path / f"out.{rank}") for rank in (0, 1))
    for name, job in jobs.items():
        alone = ranked_steps.take_steps(job, toy_arrays)
        assert differences(first[name], second[name], 0.0) == [], name
        assert differences(first[name], alone, 1e-5) == [], name
