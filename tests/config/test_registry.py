"""Methods by name, and a user's own by file or module."""

import hashlib
import sys

import pytest

from concont.config.registry import (
    is_reference,
    load_reference,
    load_registered,
    registered_names,
    same_method,
)
from concont.config.resolve import resolve
from concont.errors import UsageError
from concont.methods import method_names
from concont.types import Method
from outside import CODE
from processes import fresh


def test_every_file_of_the_folder_is_a_method_and_the_classic_ones_are_too():
    names = registered_names()
    assert set(method_names()) | {"sspl", "parm"} == set(names)
    assert all(load_registered(name)().name == name for name in names)


@pytest.mark.slow
def test_the_help_lists_every_method_without_importing_pytorch(tmp_path):
    code = "import sys; sys.argv = ['concont', 'train', '--help']; from concont.cli import main\n"
    code += "try: main()\nexcept SystemExit: pass\nassert 'torch' not in sys.modules"
    (tmp_path / "ask.py").write_text(code)
    import subprocess

    done = subprocess.run(
        [sys.executable, tmp_path / "ask.py"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    words = set(done.stdout.replace(",", " ").replace(";", " ").split())
    assert set(registered_names()) <= words
    assert fresh("train", "--help").returncode == 0


def test_a_reference_names_a_file_or_module_and_a_class():
    assert is_reference("a/b.py:C")
    assert is_reference("package.module:C")
    assert not is_reference("concont")
    assert not is_reference(None)
    assert same_method("/one/b.py:C", "two/b.py:C")
    assert not same_method("/one/b.py:C", "/one/b.py:D")
    assert not same_method("a.b:C", "b.py:C")
    assert same_method("pico", "pico")
    assert not same_method("pico", "b.py:pico")


def test_a_file_is_loaded_with_the_digest_of_its_content(tmp_path, monkeypatch):
    path = tmp_path / "smooth.py"
    path.write_text(CODE)
    monkeypatch.chdir(tmp_path)
    kind, source = load_reference("smooth.py:Smooth")
    assert isinstance(kind(), Method)
    assert source.reference == f"{path}:Smooth"
    assert source.digest == hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    assert load_reference(f"{path}:Smooth") == (kind, source)  # not run a second time
    assert not (tmp_path / "__pycache__").exists()
    path.write_text(CODE + "\n")
    changed, other = load_reference("smooth.py:Smooth")
    assert changed is not kind
    assert other.digest != source.digest


def test_a_module_of_the_working_folder_is_loaded_by_its_name(tmp_path, monkeypatch):
    (tmp_path / "own_package").mkdir()
    (tmp_path / "own_package" / "smooth.py").write_text(CODE)
    monkeypatch.chdir(tmp_path)
    before = list(sys.path)
    kind, source = load_reference("own_package.smooth:Smooth")
    assert isinstance(kind(), Method)
    assert source.reference == "own_package.smooth:Smooth"
    assert source.digest == hashlib.sha256(CODE.encode()).hexdigest()[:16]
    assert sys.path == before


NO_METHOD = """
from dataclasses import dataclass
from concont.types import MethodDefaults
class Loose(MethodDefaults): name = "loose"
@dataclass
class Thawed(MethodDefaults): name: str = "thawed"
@dataclass(frozen=True)
class Empty(MethodDefaults): name: str = "empty"
@dataclass(frozen=True)
class Whole(MethodDefaults):
    name: str = "whole"
    views = ("weak",)
    def losses(self, nets, state, batch): ...
@dataclass(frozen=True)
class Taken(Whole): name: str = "pico"
@dataclass(frozen=True)
class Odd(Whole): name: str = "../odd"
@dataclass(frozen=True)
class Digest(Whole): digest: int = 1
@dataclass(frozen=True)
class Elsewhere(Whole): trainer = "classic"
@dataclass(frozen=True)
class Deaf(Whole):
    def judge(self, probs, candidates, state): ...
value = 5
"""


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("none.py:Class", "none.py: No such file"),
        ("mine.py:", "write it as path/to/file.py:Class or package.module:Class"),
        (":Class", "write it as path/to/file.py:Class"),
        ("mine.py:Missing", "mine.py holds no class Missing"),
        ("mine.py:value", "mine.py holds no class value"),
        ("mine.py:Loose", "mine.py:Loose must be a frozen dataclass"),
        ("mine.py:Thawed", "mine.py:Thawed must be a frozen dataclass"),
        ("mine.py:Deaf", r"mine.py:Deaf: its judge must take \(probs, candidates, state, weights"),
        ("mine.py:Empty", "mine.py:Empty is no method: it has no views, losses; .*MethodDefaults"),
        ("mine.py:Taken", "mine.py:Taken is called pico, as a method of the package"),
        ("mine.py:Odd", "mine.py:Odd is called '../odd'; its name must be a word"),
        ("mine.py:Elsewhere", "mine.py:Elsewhere: its trainer must be 'network', not 'classic'"),
        ("mine.py:Digest", "a setting cannot be called digest"),
        ("broken.py:Class", "broken.py cannot be imported: ZeroDivisionError: division by zero"),
        ("no.such.module:Class", "no.such.module cannot be imported: ModuleNotFoundError"),
    ],
)
def test_what_is_no_method_is_refused_in_one_line(tmp_path, monkeypatch, reference, message):
    (tmp_path / "mine.py").write_text(NO_METHOD)
    (tmp_path / "broken.py").write_text("1 / 0\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=message) as refusal:
        resolve({"method": {"name": reference}}, code=reference)
    assert "\n" not in str(refusal.value)
