import os
import signal

import pytest

from concont.signals import stop_requests


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


def test_handlers_are_put_back():
    before = signal.getsignal(signal.SIGTERM)
    with stop_requests():
        assert signal.getsignal(signal.SIGTERM) is not before
    assert signal.getsignal(signal.SIGTERM) is before
