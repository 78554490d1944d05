import numpy as np
import pytest

from concont.data.candidate_file import CandidateSets, read_candidate_sets
from concont.data.problem import make_candidate_sets, pose
from concont.data.sources import digits, from_arrays
from concont.errors import DataError, UsageError
from concont.runs.settings import Data

ASKED = Data(labeled=0.1, ambiguity=0.3, unlabeled=True)


def test_sets_come_back_from_their_file_and_train_the_same(tmp_path):
    drawn = make_candidate_sets(digits(), ASKED)
    path = tmp_path / "sets.npz"
    drawn.write(path)
    back = read_candidate_sets(path)
    assert back.hash == drawn.hash
    assert np.array_equal(back.candidates, drawn.candidates)
    own, given = pose(digits(), ASKED), pose(digits(), Data(unlabeled=True, candidates=str(path)))
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
    with pytest.raises(DataError, match="not a file of candidate sets"):
        read_candidate_sets(path)
    sets.write(path)
    with pytest.raises(DataError, match="belong to other data"):
        pose(from_arrays(toy_arrays), Data(candidates=str(path)))
