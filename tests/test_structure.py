"""The shape of the project itself."""

import importlib
import pkgutil
from pathlib import Path

import pytest

import concont

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "concont"
MODULES = sorted(
    p.relative_to(SOURCE)
    for p in SOURCE.rglob("*.py")
    if p.name not in ("__init__.py", "__main__.py")
)
# Records and names without behaviour of their own, used by every other test.
PLAIN = {"types.py", "errors.py"}
# Tested through what they write: tests/training/test_network_run.py.
ELSEWHERE = {"training/recorder.py", "training/state.py"}


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_every_module_has_its_tests(path):
    if str(path) in PLAIN | ELSEWHERE:
        return
    assert (ROOT / "tests" / path.parent / f"test_{path.name}").exists()


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_no_module_is_too_long_to_read(path):
    assert len((SOURCE / path).read_text().splitlines()) <= 300


def test_every_module_can_be_imported():
    for module in pkgutil.walk_packages(concont.__path__, "concont."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)


def test_every_public_name_is_there():
    for name in concont.__all__:
        assert getattr(concont, name) is not None
    assert set(concont.__all__) <= set(dir(concont))
    with pytest.raises(AttributeError, match="no attribute 'nosuch'"):
        _ = concont.nosuch


def test_the_licence_is_there():
    assert "MIT" in (ROOT / "LICENSE").read_text()
