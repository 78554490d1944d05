import time

import pytest

from concont.version import __version__
from processes import fresh as concont

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("words", [("--help",), ("train", "--help"), ("--version",)])
def test_help_answers_at_once(words):
    times = []
    for _ in range(3):
        began = time.perf_counter()
        done = concont(*words)
        times.append(time.perf_counter() - began)
        assert done.returncode == 0
    assert min(times) < 0.5, times


def test_version_and_commands():
    assert concont("--version").stdout.startswith(f"concont {__version__} (commit ")
    text = concont("--help").stdout
    assert all(
        name in text for name in ("train", "evaluate", "predict", "demo", "datasets", "data")
    )
