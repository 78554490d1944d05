"""The README's example runs as it stands."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from processes import ENVIRONMENT

README = Path(__file__).parent.parent / "README.md"


@pytest.mark.slow
def test_the_python_example_runs(tmp_path):
    (code,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"\[\d \d \d \d \d\]\n", done.stdout)
    (run,) = (tmp_path / "runs").iterdir()
    assert (run / "summary.json").exists()


def test_every_link_leads_somewhere():
    for target in re.findall(r"\]\(([^)#:]+)\)", README.read_text()):
        assert (README.parent / target).exists(), target
