import json

import numpy as np
import pytest

from concont.data.candidate_file import CandidateSets, read_candidate_sets
from concont.data.problem import make_candidate_sets, make_problem
from concont.data.sources import digits, from_arrays
from concont.errors import DataError, UsageError
from concont.runs.settings import Data
from processes import concont

ASKED = Data(labeled=0.1, ambiguity=0.3, unlabeled=True)


def test_sets_come_back_from_their_file_and_train_the_same(tmp_path):
    drawn = make_candidate_sets(digits(), ASKED)
    path = tmp_path / "sets.npz"
    drawn.write(path)
    back = read_candidate_sets(path)
    assert back.hash == drawn.hash
    assert np.array_equal(back.candidates, drawn.candidates)
    own, given = (
        make_problem(digits(), ASKED),
        make_problem(digits(), Data(unlabeled=True, candidates=str(path))),
    )
    assert np.array_equal(own.candidates, given.candidates)
    assert own.sets_hash == given.sets_hash == drawn.hash
    assert drawn.labeled.sum() == 144


def test_the_sets_of_a_seed_are_the_same_on_every_machine():
    expected = "ff3f994fa937ce4e"
    assert make_candidate_sets(digits(), ASKED).hash[:16] == expected


def test_the_hash_sees_every_bit():
    base = make_candidate_sets(digits(), ASKED)
    flipped = base.candidates.copy()
    flipped[-1, -1] ^= True
    moved = base.labeled.copy()
    moved[0] ^= True
    others = [
        CandidateSets(base.labeled, flipped, base.data),
        CandidateSets(moved, base.candidates, base.data),
        CandidateSets(base.labeled, base.candidates, "other"),
    ]
    assert len({base.hash, *(other.hash for other in others)}) == 4


def test_damaged_or_foreign_files_are_refused(tmp_path, toy_arrays):
    path = tmp_path / "sets.npz"
    with pytest.raises(UsageError, match="no such file"):
        read_candidate_sets(path)
    path.write_bytes(b"nothing")
    with pytest.raises(DataError, match="not a file of candidate sets"):
        read_candidate_sets(path)
    sets = make_candidate_sets(digits(), ASKED)
    np.savez(path, labeled=sets.labeled, candidates=sets.candidates, data="x", hash=sets.hash)
    with pytest.raises(DataError, match="not those that were written"):
        read_candidate_sets(path)
    np.savez(path, labeled=sets.labeled[:5], candidates=sets.candidates, data="x", hash="x")
    with pytest.raises(DataError, match="do not fit each other"):
        read_candidate_sets(path)
    np.savez(path, labeled=sets.labeled * 1, candidates=sets.candidates, data="x", hash="x")
    with pytest.raises(DataError, match="must be bool"):
        read_candidate_sets(path)
    np.savez(path, rows=np.arange(5), candidates=sets.candidates[:5])  # as runs once left them
    with pytest.raises(DataError, match="of a run by an earlier version"):
        read_candidate_sets(path)
    sets.write(path)
    with pytest.raises(DataError, match="belong to other data"):
        make_problem(from_arrays(toy_arrays), Data(candidates=str(path)))


def test_noise_beside_given_sets_is_refused(tmp_path):
    make_candidate_sets(digits(), ASKED).write(tmp_path / "sets.npz")
    with pytest.raises(UsageError, match=r"sets\.npz are what they are; leave data\.noise out"):
        make_problem(digits(), Data(candidates=str(tmp_path / "sets.npz"), noise=0.1))


@pytest.mark.slow
def test_the_command_reads_the_sets_of_a_run_and_trains_on_them(tmp_path, toy_npz):
    """Of one that left rows out: all of the data set's are in the file."""
    short = ("--data", toy_npz, "--epochs", "1", "--set", "model.name=small")
    few = ("--labeled", "0.5", "--ambiguity", "0.3", "--no-unlabeled", "--set", "data.holdout=0.2")
    first, second = tmp_path / "first", tmp_path / "second"
    done = concont("train", *short, *few, "--out", first)
    assert done.returncode == 0, done.stderr
    read = concont("data", "candidates", "--read", first / "candidates.npz")
    assert "16 of 40 rows keep a set, 2 classes" in read.stdout
    known = json.loads((first / "data.json").read_text())["sets_hash"]
    assert f"hash {known}" in read.stdout

    given = ("--set", f"data.candidates={first / 'candidates.npz'}", "--no-unlabeled")
    done = concont("train", *short, *given, "--set", "data.holdout=0.2", "--out", second)
    assert done.returncode == 0, done.stderr
    described = [json.loads((run / "data.json").read_text()) for run in (first, second)]
    assert described[0] == described[1]
    weights = [(run / "model.safetensors").read_bytes() for run in (first, second)]
    assert weights[0] == weights[1]
