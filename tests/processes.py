"""The real command in real processes."""

import os
import subprocess
import sys

# One thread each: bit for bit the same whatever the number of cores.
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "100", "CUDA_VISIBLE_DEVICES": ""}
COMMAND = [sys.executable, "-m", "concont"]


def concont(*words, cwd=None):
    """Run to the end; returns the finished process with its output as text."""
    return subprocess.run(
        [*COMMAND, *map(str, words)],
        cwd=cwd,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=200,
    )


def start(*words, cwd=None):
    """Start and leave running."""
    return subprocess.Popen(
        [*COMMAND, *map(str, words)],
        cwd=cwd,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
