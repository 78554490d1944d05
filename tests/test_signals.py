import os
import signal
import subprocess
import sys

import pytest

from concont.signals import Stopped, stop_requests, unbroken


@pytest.fixture(autouse=True)
def _usual_handler():
    """Python's own Ctrl-C, also where the tests run in the background, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_request_is_remembered_and_the_second_ends(number):
    with pytest.raises(KeyboardInterrupt), stop_requests() as stop:
        assert not stop()
        os.kill(os.getpid(), number)
        assert stop()
        os.kill(os.getpid(), signal.SIGINT)  # the usual handler is back


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_request_ends_what_has_nothing_to_save(number):
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(Stopped), stop_requests(at_once=True):
        os.kill(os.getpid(), number)
        pytest.fail("it went on")
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_closed_terminal_is_a_request_unless_nohup_says_otherwise():
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    with stop_requests() as stop:
        os.kill(os.getpid(), signal.SIGHUP)
        assert stop()
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with stop_requests() as stop:
        os.kill(os.getpid(), signal.SIGHUP)
        assert not stop()
    signal.signal(signal.SIGHUP, before)


def test_a_stop_waits_for_what_must_not_be_broken():
    done = []
    with pytest.raises(Stopped), stop_requests(at_once=True):
        with unbroken():
            os.kill(os.getpid(), signal.SIGTERM)
            done.append("whole")
        pytest.fail("it went on")
    assert done == ["whole"]
    with stop_requests(at_once=True), unbroken():
        pass  # nothing is left of the first


def test_the_exit_code_after_a_stop_is_the_programs_own():
    program = """
from concont.signals import stop_requests
try:
    with stop_requests(at_once=True):
        exec("import os, signal; os.kill(os.getpid(), signal.SIGTERM)")
except KeyboardInterrupt:
    raise SystemExit(5)
"""
    assert subprocess.run([sys.executable, "-c", program]).returncode == 5


@pytest.mark.parametrize("at_once", [False, True])
def test_handlers_are_put_back(at_once):
    before = signal.getsignal(signal.SIGTERM)
    with stop_requests(at_once):
        assert signal.getsignal(signal.SIGTERM) is not before
    assert signal.getsignal(signal.SIGTERM) is before
