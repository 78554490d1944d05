import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from concont.errors import UsageError
from concont.ranks import store
from processes import ENVIRONMENT

SECONDS = 1.0  # that ranks wait for each other here
COMMAND = f"""
from concont.ranks import world
world.START = {SECONDS}
from concont.cli import main
main()
"""


def begin_rank(rank, address, port):
    """The command as one of two ranks, in a process of its own."""
    place = {"RANK": rank, "WORLD_SIZE": 2, "MASTER_ADDR": address, "MASTER_PORT": port}
    return subprocess.Popen(
        [sys.executable, "-c", COMMAND, "train", "--recipe", "digits", "--out", "nowhere"],
        env={**ENVIRONMENT, **{name: str(value) for name, value in place.items()}},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def tell(process):
    """What a rank says that ends by itself."""
    _, told = process.communicate(timeout=60)
    assert process.returncode == 2, told
    return told


@pytest.fixture
def listener():
    """A program that takes connections and says nothing."""
    with socket.socket() as open_port:
        open_port.bind(("127.0.0.1", 0))
        open_port.listen()
        yield open_port


@pytest.fixture
def port():
    """One at which nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("address", ["a..b", "a" * 64])
def test_a_name_that_no_machine_has_is_told_at_once(rank, address, port):
    """Of names that cannot be, so that nobody is asked."""
    told = tell(begin_rank(rank, address, port))
    assert told == f"error: rank {rank} knows no machine '{address}' (MASTER_ADDR)\n"


@pytest.mark.parametrize("address", ["127.0.0.1", "localhost"])
def test_a_rank_that_nobody_answers_says_so_in_time(address, port):
    told = tell(begin_rank(1, address, port))
    assert told.startswith(f"error: rank 1 reaches nobody at {address}:{port} within 1 s (")
    assert "Connection refused" in told
    assert told.count("\n") == 1


def test_packets_that_are_dropped_are_no_answer(listener):
    """As of an address behind a wall: here, of a port whose queue is full."""
    listener.listen(0)
    with socket.socket() as first:
        first.connect(listener.getsockname())
        began = time.monotonic()
        with pytest.raises(UsageError, match=r"reaches nobody at .* within 0.2 s \(no answer\)"):
            store.wait_for_answer(1, *listener.getsockname(), 0.2)
        assert time.monotonic() - began < 20


def test_a_rank_waits_for_rank_0_to_open_its_port(port):
    with socket.socket() as late, ThreadPoolExecutor(1) as other:
        waiting = other.submit(store.wait_for_answer, 1, "127.0.0.1", port, 20.0)
        time.sleep(0.2)
        assert not waiting.done()
        late.bind(("127.0.0.1", port))
        late.listen()
        assert waiting.result() is None


@pytest.mark.parametrize("kind", ["mute", "alone"])
def test_ranks_that_do_not_meet_say_so_in_time(kind, request, port):
    """Rank 1 at a program that takes connections and says nothing; rank 0 without the other."""
    if kind == "mute":
        port = request.getfixturevalue("listener").getsockname()[1]
    told = tell(begin_rank(int(kind == "mute"), "127.0.0.1", port))
    assert told == f"error: the ranks do not meet at 127.0.0.1:{port} within 1 s\n"
