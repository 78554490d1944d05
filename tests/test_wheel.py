"""The wheel: built for real, installed where the source cannot be seen, and used from there."""

import fcntl
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from concont.version import __version__

pytestmark = pytest.mark.slow
MARGIN = 0.02

ROOT = Path(__file__).parent.parent
ENVIRONMENT = {
    **{k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "CONCONT_", "GIT_"))},
    "OMP_NUM_THREADS": "1",
    "COLUMNS": "100",
    "CUDA_VISIBLE_DEVICES": "",
}


def call(*words, cwd, check=True, **more):
    """Run to the end in a clean environment; returns the finished process."""
    done = subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env={**ENVIRONMENT, **more},
        capture_output=True,
        text=True,
        timeout=230,
    )
    assert not check or done.returncode == 0, done.stdout + done.stderr
    return done


def build(source, out, **more):
    """The wheel of a source tree; nothing is fetched."""
    options = ["--no-deps", "--no-build-isolation", "--no-index", "-w", out]
    call(sys.executable, "-m", "pip", "wheel", *options, source, cwd=source, **more)
    (wheel,) = out.glob("*.whl")
    return wheel


def build_by_hook(source, out, **more):
    """The same without pip: by the function of the build backend that pip calls."""
    out.mkdir()
    program = f"import hatchling.build; print(hatchling.build.build_wheel({str(out)!r}))"
    done = call(sys.executable, "-c", program, cwd=source, **more)
    return out / done.stdout.strip().splitlines()[-1]


def stamp(wheel):
    with zipfile.ZipFile(wheel) as archive:
        try:
            return archive.read("concont/COMMIT").decode().strip()
        except KeyError:
            return None


def git(*words, cwd, **more):
    identity = ["-c", "user.name=t", "-c", "user.email=t@t"]
    done = call("git", *identity, *words, cwd=cwd, check=False, **more)
    return done.stdout.strip() if done.returncode == 0 else None


def make_once(tmp_path_factory, name, make):
    """What `make(folder)` puts into a folder, shared by all processes of this run of the tests.

    pytest-xdist gives each process a folder of its own inside one of the run.
    """
    of_process = tmp_path_factory.getbasetemp()
    of_run = of_process.parent if "PYTEST_XDIST_WORKER" in os.environ else of_process
    folder, done = of_run / name, of_run / f"{name}.done"
    with open(of_run / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the others wait here until it is made
        if not done.exists():
            folder.mkdir()
            make(folder)
            done.touch()
    return folder


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    (path,) = make_once(tmp_path_factory, "dist", lambda out: build(ROOT, out)).glob("*.whl")
    return path


def make_bare_environment(home):
    """A new environment that sees what is installed in this one, but not the source.

    A path in a .pth file is not searched for further .pth files, and it is one of those that
    makes an editable install of concont visible.
    """
    call(sys.executable, "-m", "venv", "--without-pip", home, cwd=home)
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    packages = Path(call(home / "bin" / "python", "-c", ask, cwd=home).stdout.strip())
    ours = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (packages / "shared.pth").write_text("".join(f"{path}\n" for path in sorted(ours)))
    failed = call(home / "bin" / "python", "-c", "import concont", cwd=home, check=False)
    assert "No module named 'concont'" in failed.stderr


@pytest.fixture(scope="session")
def installed(tmp_path_factory, wheel):
    """The commands of an environment into which the wheel was installed."""

    def install(home):
        make_bare_environment(home)
        # pip sees the record of the editable install through shared.pth: leave that one alone.
        options = ["--no-deps", "--no-index", "--ignore-installed"]
        call(home / "bin" / "python", "-m", "pip", "install", *options, wheel, cwd=home)

    return make_once(tmp_path_factory, "installed", install) / "bin"


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        inside = set(archive.namelist())
    source = ROOT / "src"
    shelf = source / "concont" / "config" / "recipes"
    recipes = {str(p.relative_to(source)) for p in shelf.rglob("*.yaml")}
    assets = source / "concont" / "report" / "assets"
    page = {str(p.relative_to(source)) for p in assets.iterdir()}
    modules = {str(p.relative_to(source)) for p in source.rglob("*.py")}
    shipped = {
        f"concont/config/recipes/{name}.yaml" for name in ("default", "overlays/rows", "digits")
    }
    assert shipped <= recipes
    assert "concont/report/assets/plotly-cartesian.min.js.gz" in page
    assert {"concont/py.typed", "concont/paper/tables.yaml"} | recipes | page | modules <= inside
    about = f"concont-{__version__}.dist-info/"
    assert f"{about}licenses/LICENSE" in inside
    assert all(name.startswith(("concont/", about)) for name in inside)


def test_the_installed_command_names_the_commit(wheel, installed, tmp_path):
    head = git("rev-parse", "HEAD", cwd=ROOT)
    said = call(installed / "concont", "--version", cwd=tmp_path).stdout.strip()
    if head is None:
        assert said == f"concont {__version__} (commit unknown)"
        return
    assert stamp(wheel) in (head, f"{head}-dirty")
    modified = ", modified" if stamp(wheel).endswith("-dirty") else ""
    assert said == f"concont {__version__} (commit {head[:12]}{modified})"


def test_a_modified_tree_says_so(tmp_path):
    tree, alone = tmp_path / "tree", {"GIT_CEILING_DIRECTORIES": str(tmp_path)}
    (tree / "src" / "concont").mkdir(parents=True)
    names = ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE", "src/concont/version.py")
    for name in names:
        shutil.copy(ROOT / name, tree / name)
    (tree / "src" / "concont" / "__init__.py").touch()
    assert stamp(build_by_hook(tree, tmp_path / "without-git", **alone)) is None
    git("init", "-q", cwd=tree)
    git("add", ".", cwd=tree)
    git("commit", "-qm", "first", cwd=tree)
    head = git("rev-parse", "HEAD", cwd=tree, **alone)
    assert len(head) == 40
    assert stamp(build_by_hook(tree, tmp_path / "clean")) == head
    (tree / "README.md").write_text("changed\n")
    assert stamp(build_by_hook(tree, tmp_path / "modified")) == f"{head}-dirty"


def test_the_installed_command_trains(installed, tmp_path):
    ask = "import concont; print(concont.__file__)"
    origin = Path(call(installed / "python", "-c", ask, cwd=tmp_path).stdout.strip())
    assert origin.is_relative_to(installed.parent)
    words = ("train", "--data", "digits", "--epochs", "1", "--set", "model.width=4", "--out", "run")
    done = call(installed / "concont", *words, cwd=tmp_path)
    assert "Run: run" in done.stdout
    assert (tmp_path / "run" / "summary.json").is_file()


@pytest.mark.long
def test_the_installed_command_runs_the_demo(installed, tmp_path):
    """The demonstration, whole, as a user of the wheel runs it: ConCont ends ahead."""
    done = call(installed / "concont", "demo", "--seed", "3", "--out", "demo", cwd=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["demo"]
    folders = ("concont", "concont-partial-only", "partial-loss")
    summaries = [json.loads((tmp_path / "demo" / f / "summary.json").read_text()) for f in folders]
    whole, partial_only, plain = (summary["accuracy_last"] for summary in summaries)
    assert whole > partial_only + MARGIN
    assert whole > plain + MARGIN
    assert f"{100 * whole:.2f} %" in done.stdout
    assert "Runs: demo" in done.stdout
