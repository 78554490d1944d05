import math
import os
import subprocess
import sys

import pytest
import torch

from concont.bench.ranks import (
    BETWEEN,
    WITHIN,
    Link,
    Messages,
    calculate_messages_ms,
    choose_link,
    estimate_ranks,
    measure_messages,
)
from concont.bench.step_timing import StepRunner, make_random_dataset, prepare_on_all_rows
from concont.config.resolve import resolve
from processes import ENVIRONMENT

SMALL = {
    "data": {"labeled": 0.5, "ambiguity": 0.3},
    "model": {"name": "small", "width": 4, "hidden": 8, "embedding": 6},
    "train": {"batch_size": 16, "device": "cpu"},
}


@pytest.fixture
def runner():
    def make(**method):
        settings = resolve({**SMALL, "method": method})
        return StepRunner(prepare_on_all_rows(settings, make_random_dataset(40, 8)))

    return make


def test_the_usual_link_is_within_a_machine_or_between_them():
    assert choose_link(8) == WITHIN
    assert choose_link(9) == BETWEEN
    assert choose_link(64, 100.0) == Link(100.0, BETWEEN.latency_us)
    assert choose_link(2, None, 5.0) == Link(WITHIN.gb_per_s, 5.0)


def test_messages_take_what_their_sizes_say():
    messages = Messages(gradients=4_000_000, row=100, statistics=8000, n_statistics=3)
    found = calculate_messages_ms(messages, rows=10, ranks=4, link=Link(2.0, 50.0))
    hop = 2 * 0.05  # log2 of 4, in ms
    assert found == pytest.approx(
        {
            "gradients": hop + 1.5 * 4_000_000 / 2e6,
            "rows": 3 * hop + 2 * 3 * 10 * 100 / 2e6,
            "statistics": 3 * hop + 1.5 * 8000 / 2e6,
        }
    )


def test_the_sizes_are_those_of_a_step(runner):
    made = runner(name="concont", queue=8)
    network = made.run.state.nets.modules["online"]
    weights = sum(p.numel() for p in network.parameters())
    before = {name: tensor.clone() for name, tensor in network.named_parameters()}
    found = measure_messages(made)
    assert found.gradients == 4 * weights
    # Key, its label, and of the verdict label, score, confidence and probabilities of ten classes.
    assert found.row == 6 * 4 + 8 + 8 + 4 + 1 + 10 * 4
    channels = [4, 4, 8, 8, 16]
    passes = 3  # online there and back, and the key network
    assert found.n_statistics == passes * len(channels)
    assert found.statistics == 4 * passes * sum(2 * c + 1 for c in channels)
    assert all(torch.equal(p, before[name]) for name, p in network.named_parameters())
    assert all(p.grad is None for p in network.parameters())


def test_a_head_that_learns_nothing_is_not_sent(runner):
    made = runner(name="partial")
    network = made.run.state.nets.modules["online"]
    unused = sum(p.numel() for p in network.projector.parameters())
    weights = sum(p.numel() for p in network.parameters())
    assert measure_messages(made).gradients == 4 * (weights - unused)


def test_a_calculation_adds_messages_to_what_was_measured():
    link = Link(1.0, 1000.0)
    found = estimate_ranks(resolve(SMALL), 40, 8, calls=1, ranks=4, link=link)
    assert {name: one["rows_of_a_rank"] for name, one in found["calculated"].items()} == {
        "more_rows": 16,
        "same_rows": 4,
    }
    for one in found["calculated"].values():
        sent = sum(one["message_ms"].values())
        assert one["step_ms"] == pytest.approx(one["compute_ms"] + sent)
        alone = 16 / found["calculated"]["more_rows"]["compute_ms"]  # images a millisecond
        speed = one["rows_of_a_rank"] / one["step_ms"]
        assert one["efficiency"] == pytest.approx(speed / alone)
        rows = one["rows_of_a_rank"]
        assert one["images_per_s"] == pytest.approx(4 * rows / one["step_ms"] * 1000)
        assert one["message_ms"]["statistics"] > 2 * one["messages"]["n_statistics"]
    assert "same_rows" not in estimate_ranks(resolve(SMALL), 40, 8, 1, 16, link)["calculated"]


STARTED = """
import os, sys
from concont.bench import ranks
words, path = sys.argv[1:]
ranks.count_cores = lambda: 5
os.environ["PYTHONPATH"] = path
print(ranks.run_on_ranks(2, [words]), os.environ["OMP_NUM_THREADS"])
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "code"),
    [("--version", 0), pytest.param("--bogus", 2, marks=pytest.mark.long), ("kill", 1)],
)
def test_ranks_are_started_by_torchrun_and_their_exit_code_is_kept(tmp_path, words, code):
    path = os.pathsep.join(sys.path)
    if words == "kill":  # a concont of whom each rank is killed
        (tmp_path / "concont.py").write_text("import os\nos.kill(os.getpid(), 9)\n")
        path = str(tmp_path)
    own = {name: value for name, value in ENVIRONMENT.items() if name != "OMP_NUM_THREADS"}
    begun = [sys.executable, "-c", STARTED, words, path]
    done = subprocess.run(begun, capture_output=True, text=True, env=own, check=False)
    assert done.stdout.splitlines()[-1:] == [f"{code} {math.floor(5 / 2)}"], done.stderr
