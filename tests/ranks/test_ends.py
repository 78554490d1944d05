import json
import subprocess
import sys

import pytest

from concont.errors import ConcontError, DataError, Interrupted, UsageError
from concont.ranks import ends, world
from concont.ranks.ends import End, describe, explain, get_exit_code
from concont.ranks.world import LostRank, World

CAUSE, STOPPED = End("no such file", 2, True), End("stopped", 1, False)
LOST = End("RuntimeError: Timed out waiting", 1, False, lost=True)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (UsageError("no such file"), CAUSE),
        (DataError("damaged"), End("damaged", 1, True)),
        (Interrupted("stopped"), STOPPED),
        (LostRank("another rank has ended"), End("another rank has ended", 1, False, lost=True)),
        (KeyboardInterrupt(), End("stopped", 1, False)),
        (RuntimeError("gloo: Connection closed by peer"), False),
        (RuntimeError("NCCL error in: x"), False),
        (RuntimeError("mat1 and mat2\nshapes"), End("RuntimeError: mat1 and mat2", 1, True)),
        (KeyError("x"), End("KeyError: 'x'", 1, True)),
        (SystemExit(3), End("ended", 3, True)),
    ],
)
def test_an_error_is_told_apart_from_the_loss_of_another_rank(error, expected):
    found = describe(error)
    assert (found.cause if expected is False else found) == expected


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ({0: STOPPED, 1: CAUSE}, "rank 1: no such file"),
        ({0: STOPPED}, "rank 1 of 2 ended without a word"),
        ({1: STOPPED}, "rank 0 of 2 ended without a word"),
        ({0: STOPPED, 1: STOPPED}, "stopped"),
        ({0: LOST, 1: STOPPED}, "stopped"),
        ({0: LOST, 1: LOST}, "all 2 ranks live, and waited for each other in vain"),
    ],
)
def test_the_reason_is_the_first_cause_or_the_rank_that_is_silent(said, line):
    assert explain(said, 2, begun=True).line.startswith(line)
    silent = explain({0: STOPPED}, 3, begun=True).line
    assert silent.startswith("ranks 1, 2 of 3 ended")
    assert "--resume" in silent
    assert "--resume" not in explain({0: STOPPED}, 3, begun=False).line


class Store:
    def __init__(self, said):
        self.content = {f"end/{r}": json.dumps(vars(end)).encode() for r, end in said.items()}

    def set(self, key, value):
        self.content[key] = value.encode()

    def get(self, key):
        return self.content[key]

    def check(self, keys):
        return set(keys) <= self.content.keys()


@pytest.mark.parametrize(
    ("rank", "error", "others", "raised", "code"),
    [
        (0, UsageError("mine"), {}, UsageError, 2),
        (1, UsageError("mine"), {}, SystemExit, 2),
        (1, KeyError("mine"), {}, KeyError, None),  # a traceback
        (0, RuntimeError("gloo"), {1: CAUSE}, ConcontError, 2),
        (0, RuntimeError("gloo"), {}, ConcontError, 1),
        (1, RuntimeError("gloo"), {}, ConcontError, 1),  # rank 0 is gone
        (1, RuntimeError("gloo"), {0: STOPPED, 2: CAUSE}, SystemExit, 2),
        (0, Interrupted("stop"), {1: STOPPED, 2: STOPPED}, Interrupted, 1),
        (1, Interrupted("stop"), {0: STOPPED, 2: STOPPED}, SystemExit, 1),
        (0, RuntimeError("gloo"), {1: STOPPED, 2: STOPPED}, ConcontError, 1),  # no traceback
        (0, RuntimeError("gloo: Timed out"), {1: LOST, 2: LOST}, ConcontError, 1),
    ],
)
def test_one_rank_says_why_and_all_end(monkeypatch, rank, error, others, raised, code):
    monkeypatch.setattr(ends, "GRACE", 0.1)
    monkeypatch.setattr(ends, "TOGETHER", 0.1)
    store = Store(others)
    monkeypatch.setattr(ends, "WORLD", World(size=3, rank=rank, store=store))
    monkeypatch.setattr(world, "WORLD", ends.WORLD)
    told = ends._end(error)
    assert type(told) is raised
    assert get_exit_code(told) == (1 if code is None else code)
    assert store.check([world.ENDED, f"end/{rank}"])


def test_a_rank_with_a_gpu_that_fails_does_not_wait_for_the_others_at_its_exit():
    script = """
import atexit, sys
from concont.ranks import ends, world
from concont.errors import UsageError
atexit.register(lambda: print("took down what waits for other ranks"))
world.connect, world.WORLD.on_gpu = lambda: None, True
try:
    with ends.joined():
        raise UsageError("no such file")
except UsageError as error:
    print(error)
    sys.exit(error.exit_code)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "no such file\n"), done.stderr
