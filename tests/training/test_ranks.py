"""Several processes that train as one: the real thing, with gloo on a CPU."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import torch

import ranked_steps
from concont.data.order import Order
from concont.errors import UsageError
from concont.methods.concont import ConCont
from concont.ranks import world
from concont.training.ranks import agree_on_run, refuse_uneven_ranks
from processes import ENVIRONMENT, SECONDS, concont, concont_on_ranks, on_ranks

# A doubt at its limit falls otherwise where sums round otherwise.
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_thread")]
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
SHORT = (
    *("train", "--data", "digits", "--labeled", "0.1", "--device", "cpu", "--epochs", "4"),
    *("--set", "model.width=4", "--set", "train.evaluate_every=2"),
    *("--set", "train.checkpoint_every=0", "--set", "train.rank_timeout=20"),
)


@pytest.fixture
def jobs(toy_arrays, toy_config):
    """Settings and data by name: every method that has a network, and every kind of data."""
    toy_config["data"]["unlabeled"] = True
    found = {
        name: ({**toy_config, "method": method}, toy_arrays)
        for name, method in ranked_steps.METHODS.items()
    }
    config = found["concont"][0]
    votes = (
        np.random.RandomState(0).randint(0, 4, (40, 2)) + np.eye(2, dtype=int)[np.arange(40) % 2]
    )
    votes[30:] = 1
    own = {"candidates": votes > 0, "candidate_weights": votes.astype(float)}
    voted = {name: array for name, array in toy_arrays.items() if name != "y_train"}
    found["votes"] = ({**config, "data": {}}, {**voted, **own})
    rows = {name: toy_arrays[name].reshape(-1, 64) / 255 for name in ("x_train", "x_test")}
    network = {**toy_config["model"], "name": "mlp"}
    of_features = {k: v for k, v in config.items() if k != "views"}
    found["features"] = ({**of_features, "model": network}, {**toy_arrays, **rows})
    streamed = {**toy_config["train"], "memory_share": 0.0}
    found["streamed"] = ({**config, "train": streamed}, toy_arrays)
    return found


def find_differences(found, expected, tolerance):
    """Names of the tensors that are not near."""
    assert found.keys() == expected.keys()
    near = {"rtol": tolerance, "atol": tolerance}
    pairs = ((name, found[name].double(), expected[name].double()) for name in expected)
    return [name for name, one, two in pairs if not torch.allclose(one, two, **near)]


def test_two_ranks_take_the_steps_of_one_process_with_every_method(tmp_path, toy_config, jobs):
    config, arrays = jobs["concont"]
    own = {**toy_config["train"], "sync_batchnorm": False}
    jobs["own-batchnorm"] = ({**config, "train": own}, arrays)
    torch.save(jobs, tmp_path / "jobs")
    codes = on_ranks(2, ranked_steps.main, tmp_path / "jobs", tmp_path / "out")
    assert codes == [0, 0]
    first, second = (torch.load(tmp_path / f"out.{rank}") for rank in (0, 1))
    one, two = first.pop("own-batchnorm"), second.pop("own-batchnorm")
    del jobs["own-batchnorm"]
    apart = find_differences(one, first["concont"], 1e-5)
    assert "online.classifier.weight" in apart  # another training, the same on both ranks
    assert all("running_" in name for name in find_differences(one, two, 0.0))
    for name, job in jobs.items():
        alone = ranked_steps.take_steps(*job)
        assert find_differences(first[name], second[name], 0.0) == [], name
        assert find_differences(first[name], alone, 1e-5) == [], name


@pytest.mark.long
def test_compiled_ranks_take_the_steps_of_one_plain_process(tmp_path, jobs):
    config, arrays = jobs["concont"]
    job = {**config, "train": {**config["train"], "compile": True}}
    torch.save({"compiled": (job, arrays)}, tmp_path / "jobs")
    codes = on_ranks(2, ranked_steps.main, tmp_path / "jobs", tmp_path / "out")
    assert codes == [0, 0]
    alone = ranked_steps.take_steps(config, arrays)
    for rank in (0, 1):
        found = torch.load(tmp_path / f"out.{rank}")["compiled"]
        assert find_differences(found, alone, 1e-4) == [], rank


def test_all_begin_with_the_networks_of_rank_0(tmp_path, toy_arrays, toy_config):
    torch.save((toy_config, toy_arrays), tmp_path / "given")
    codes = on_ranks(2, ranked_steps.begin_apart, tmp_path / "given", tmp_path / "out")
    assert codes == [0, 0]
    first, second = (torch.load(tmp_path / f"out.{rank}") for rank in (0, 1))
    assert first["key"]["backbone.kept"].any()
    for name in ("online", "key"):
        for key, tensor in first[name].items():
            assert torch.equal(tensor, second[name][key]), key


def test_rank_0_alone_writes_and_speaks(tmp_path):
    (first, said, told), (second, *silent) = concont_on_ranks(
        2, *SHORT, "--epochs", "2", "--out", tmp_path / "run", folder=tmp_path
    )
    assert (first, second) == (0, 0), told
    assert "on 2 ranks" in said
    assert "accuracy" in said
    assert silent == ["", ""]
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["epoch"] for line in lines] == [2]
    assert (tmp_path / "run" / "model.safetensors").is_file()


REFUSED = {
    "uneven": (("--set", "train.batch_size=33"), (), "2 ranks cannot share a batch of 33 rows"),
    "settings": ((), ("--set", "optimizer.lr=0.03"), "rank 1 is not like rank 0 (settings: "),
    "sets": ((), ("--set", "data.seed=7"), "rank 1 is not like rank 0 (settings: "),
    "data": (("--data", "a.npz"), ("--data", "b.npz"), "; data: "),
    "misspelt": ((), ("--set", "optimizer.lrr=1"), "rank 1: unknown setting optimizer.lrr"),
    "minutes": (
        ("--minutes", "1"),
        ("--minutes", "2"),
        "rank 1 is not like rank 0 (--minutes: 2.0, not 1.0)",
    ),
    "no-network": (("--method", "sspl"), (), "trains no network: start it without torchrun"),
}


@pytest.mark.parametrize(
    "kind",
    [k if k == "settings" else pytest.param(k, marks=pytest.mark.long) for k in REFUSED],
)
def test_wrong_use_is_one_line_from_rank_0_and_ends_all(tmp_path, toy_arrays, kind):
    words, other, line = REFUSED[kind]
    words = [*{"no-network": SHORT[:3], "minutes": SHORT[:7]}.get(kind, SHORT), *words]
    if kind == "data":
        for name in ("a", "b"):
            np.savez(tmp_path / f"{name}.npz", **toy_arrays)
            toy_arrays["x_train"] = 255 - toy_arrays["x_train"]
        words += ["--recipe", "digits", "--set", "train.batch_size=16"]
        words, other = (
            [str(tmp_path / w) if ".npz" in w else w for w in ws] for ws in (words, other)
        )
    found = concont_on_ranks(2, *words, "--out", tmp_path / "run", folder=tmp_path, other=other)
    assert [code for code, *_ in found] == [2, 2]
    (_, said, told), (_, *silent) = found
    assert said == ""
    assert [line in told, len(told.splitlines())] == [True, 1], told
    assert silent[0] == ""
    assert "error:" not in silent[1]
    assert not (tmp_path / "run").exists()


def test_batches_must_be_divided_evenly(monkeypatch):
    order = Order(torch.arange(10), torch.arange(0), 6, None, 1)
    refuse_uneven_ranks(order, ConCont())
    monkeypatch.setattr(world.WORLD, "size", 4)
    with pytest.raises(UsageError, match="4 ranks cannot share a batch of 6 rows evenly"):
        refuse_uneven_ranks(order, ConCont())


def test_blends_of_a_batch_that_several_ranks_share_are_refused(monkeypatch):
    order = Order(torch.arange(10), torch.arange(0), 8, None, 1)
    method = ConCont(teacher="momentum", weak_rows="partial", part_blend=0.5)
    refuse_uneven_ranks(order, method)
    monkeypatch.setattr(world.WORLD, "size", 4)
    refuse_uneven_ranks(order, ConCont())
    with pytest.raises(UsageError, match="part_blend takes one process"):
        refuse_uneven_ranks(order, method)


def test_one_process_agrees_with_itself(toy_arrays, toy_config):
    before = torch.get_rng_state()
    run = ranked_steps.prepare_run(toy_config, toy_arrays)
    state = torch.get_rng_state()
    agree_on_run(run)
    assert torch.equal(torch.get_rng_state(), state)
    torch.set_rng_state(before)


def begin_torchrun(*words, options=()):
    """Two ranks of the command, by torchrun."""
    return subprocess.Popen(
        [*TORCHRUN, *options, "-m", "concont", *map(str, words)],
        env={**ENVIRONMENT, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.long
def test_two_trainings_run_side_by_side_on_one_machine(tmp_path):
    both = [begin_torchrun(*SHORT, "--out", tmp_path / name) for name in ("one", "other")]
    ends = [(process.communicate(timeout=SECONDS), process.returncode) for process in both]
    assert [code for _, code in ends] == [0, 0], ends


def find_rank(process, rank):
    """The process of a rank, by its environment; Linux alone tells it."""
    children = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(process.pid)], capture_output=True, text=True
    ).stdout
    for pid in children.split():
        with open(f"/proc/{pid}/environ") as file:
            if f"RANK={rank}" in file.read().split("\0"):
                return int(pid)
    raise AssertionError(f"no rank {rank}")


def wait_for(path, process):
    end = time.monotonic() + SECONDS
    while not path.exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.long
@pytest.mark.parametrize(("rank", "number"), [(1, "SIGKILL"), (0, "SIGKILL"), (1, "SIGSTOP")])
def test_a_rank_that_dies_or_hangs_is_named_and_ends_the_run(tmp_path, rank, number):
    process = begin_torchrun(*SHORT, "--out", tmp_path / "run", "--epochs", "400")
    wait_for(tmp_path / "run" / "checkpoint.pt", process)
    pid = find_rank(process, rank)
    os.kill(pid, getattr(signal, number))
    _, told = process.communicate(timeout=SECONDS)
    assert f"error: rank {rank} of 2 ended without a word" in told
    assert process.returncode == 1


@pytest.mark.long
def test_torchrun_starts_a_killed_run_again_which_ends_as_if_nothing_had_been(tmp_path):
    whole = begin_torchrun(*SHORT, "--out", tmp_path / "whole")
    _, told = whole.communicate(timeout=SECONDS)
    assert whole.returncode == 0, told
    options = ("--max-restarts", "1")
    process = begin_torchrun(*SHORT, "--out", tmp_path / "run", options=options)
    wait_for(tmp_path / "run" / "checkpoint.previous.pt", process)
    os.kill(find_rank(process, 1), signal.SIGKILL)
    said, told = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, told
    assert "of them done" in said
    found, expected = (
        (tmp_path / name / "model.safetensors").read_bytes() for name in ("run", "whole")
    )
    assert found == expected


@pytest.mark.long
def test_a_run_of_two_ranks_goes_on_with_one_process(tmp_path):
    process = begin_torchrun(*SHORT, "--out", tmp_path / "run")
    wait_for(tmp_path / "run" / "checkpoint.pt", process)
    os.kill(process.pid, signal.SIGTERM)
    _, told = process.communicate(timeout=SECONDS)
    assert "go on with: concont train --resume" in told
    alone = concont(*SHORT, "--out", tmp_path / "alone")
    done = concont("train", "--resume", tmp_path / "run")
    assert (alone.returncode, done.returncode) == (0, 0), done.stderr
    losses = [
        json.loads((tmp_path / name / "metrics.jsonl").read_text().splitlines()[-1])["loss"]
        for name in ("run", "alone")
    ]
    assert losses[0] == pytest.approx(losses[1], rel=1e-2)
