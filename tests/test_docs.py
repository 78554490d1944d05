"""The pages of docs/ hold together, examples in docstrings run, the site is built from the code."""

import doctest
import html
import importlib.util
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

import concont
from concont.config.registry import load_registered, registered_names
from concont.config.resolve import check
from concont.runs.model_settings import Model
from concont.runs.settings import Data, Optimizer, Train
from concont.runs.view_settings import View
from processes import ENVIRONMENT, fresh

ROOT = Path(__file__).parent.parent
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md")),
    *sorted((ROOT / "docs").glob("*.md")),
]
PUBLIC = [name for name in concont.__all__ if name not in ("__version__", "classic", "Run")]
NAMES = {**{name: getattr(concont, name) for name in PUBLIC}, "gist": concont.classic.gist}

ESTIMATORS = [
    concont.SSPLClassifier,
    concont.PARMClassifier,
    concont.PartialLabelClassifier,
]
METHODS = [load_registered(name) for name in registered_names()]
# Fields without a comment beside them; let there be no more.
UNDESCRIBED = {
    *("name", "branches", "part_loss", "part_mean", "pseudo", "balance", "selection", "queue"),
    *("threshold", "threshold_lower", "threshold_upper", "threshold_rate"),
    *("repr_weight", "temperature", "prototype_momentum"),
}


def test_a_training_on_one_machine_is_shown_with_a_port_of_its_own():
    texts = [page.read_text("utf-8") for page in (*PAGES, ROOT / "CHANGELOG.md")]
    shown = re.findall(r"torchrun [^`\n]*--nproc-per-node", "\n".join(texts))
    assert len(shown) >= 3
    assert all("--standalone" in line for line in shown)


@pytest.fixture(scope="module")
def reference():
    """What writes the references of settings and commands."""
    path = ROOT / "docs" / "_ext" / "reference.py"
    spec = importlib.util.spec_from_file_location("reference", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclass looks itself up there
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def flatten(plain, prefix=""):
    """Nested settings as `section.key: value`."""
    for name, value in plain.items():
        if isinstance(value, dict):
            yield from flatten(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_every_link_leads_somewhere(page):
    text = re.sub(r"```.*?```|`[^`]*`", "", page.read_text("utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (page.parent / target).exists(), target


def test_the_index_leads_to_every_page():
    index = (ROOT / "docs" / "index.md").read_text("utf-8")
    blocks = re.findall(r"```{toctree}\n(.*?)```", index, re.DOTALL)
    listed = [line for text in blocks for line in text.splitlines() if line and line[0] != ":"]
    pages = {page.stem for page in (ROOT / "docs").glob("*.md")} - {"index"}
    assert sorted(listed) == sorted(pages)


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_has_an_example_that_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    item = NAMES[name]
    (found,) = (t for t in doctest.DocTestFinder(recurse=False).find(item, name) if t.examples)
    said = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    assert runner.run(found, out=said.append).failed == 0, "".join(said)


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_is_documented_for_users(name):
    text = NAMES[name].__doc__
    assert re.search(r"^ +Parameters\n +-+$", text, re.M)
    assert "Examples\n" in text
    assert "References\n" in text or name in ("load", "as_sets", "set_score")
    assert f"concont.{name}" in (ROOT / "docs/api.md").read_text("utf-8").replace("classic.", "")


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_option_of_an_estimator_and_what_it_learns_is_described(estimator):
    parameters, learned = estimator.__doc__.split("Attributes\n")
    listed = re.findall(r"^    (\w+(?:, \w+)*) : ", parameters, re.M)
    assert sorted(", ".join(listed).split(", ")) == sorted(estimator().get_params())
    listed = ", ".join(re.findall(r"^    (\w+_(?:, \w+_)*) : ", learned, re.M)).split(", ")
    own = [name for name in estimator.__annotations__ if name.endswith("_")]
    assert set(own) <= set(listed)


def test_the_reference_of_settings_has_every_setting_with_its_default(reference):
    by_heading = reference.all_settings()
    shared = [s for name, (_, found) in by_heading.items() if "method" not in name for s in found]
    for name in registered_names():
        _, own = by_heading[f"method: {name}"]
        settings = dict(flatten(check({"method": {"name": name}}).as_dict()))
        del settings["recipe"]
        assert {s.key for s in [*shared, *own]} == set(settings)
        for setting in [*shared, *own]:
            assert setting.kind
            assert setting.description or setting.key.split(".")[1] in UNDESCRIBED, setting.key
            if setting.key != "data.unlabeled":  # null, which each method fills in its own way
                value = settings[setting.key]
                assert setting.default == reference.describe_value(value), setting.key


@pytest.mark.parametrize("cls", [Data, View, Model, Optimizer, Train, *METHODS])
def test_a_setting_is_described_by_the_comment_beside_it(cls, reference):
    source = Path(sys.modules[cls.__module__].__file__).read_text("utf-8")
    body = re.split(r"\n(?=@|class |def )", source.split(f"\nclass {cls.__name__}", 1)[1])[0]
    described = reference.comments_of(cls)
    assert set(described) <= {field.name for field in fields(cls)}
    for name, text in described.items():
        quoted = re.escape(text)
        beside, above = (
            rf"    {name}: [^#\n]*  # {quoted}$",
            rf"    # {quoted}\n    {name}: [^#\n]*$",
        )
        plain = rf"    {name}: [^#\n]*$"
        assert re.search(rf"^(?:{beside}|{above})" if text else f"^{plain}", body, re.M), name


@pytest.mark.parametrize(
    ("hint", "words"),
    [
        (Data.__annotations__["ambiguity"], "number, from 0, below 1 or `null`"),
        (View.__annotations__["crop"], "list of 2: number, from 0"),
        (Model.__annotations__["name"], "text"),
        (Model.__annotations__["stem"], "`auto` or `whole` or `half` or `quarter`"),
        (View.__annotations__["pad"], "whole number, from 0 or number, from 0, below 1"),
        (Train.__annotations__["epochs"], "whole number, from 1"),
        (Train.__annotations__["deterministic"], "true or false"),
    ],
)
def test_types_are_told_in_words(hint, words, reference):
    assert reference.describe_type(hint) == words


@pytest.mark.slow
def test_the_reference_of_commands_has_what_help_has(reference):
    written = {name: command for name, command in reference.all_commands()}
    parts = re.split(r"^## ", reference.write_commands(), flags=re.M)[1:]
    assert [part.split("\n", 1)[0] for part in parts] == list(written)
    for part in parts:
        name, text = part.split("\n", 1)
        if name in ("concont train", "concont results", "concont data candidates"):
            said = fresh(*name.split()[1:], "--help").stdout
            options = set(re.findall(r"(--[a-z][\w-]*)", said)) - {"--help"}
            assert options <= set(re.findall(r"(--[a-z][\w-]*)", text)), name


@pytest.mark.long
@pytest.mark.slow
def test_the_site_is_built_without_a_warning_and_without_a_network(tmp_path, reference):
    blocked = {"http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"}
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-d", tmp_path / "cache"]
    done = subprocess.run(
        [*command, "-b", "html", ROOT / "docs", tmp_path / "site"],
        env={**ENVIRONMENT, **blocked},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    pages = {path.stem: path.read_text("utf-8") for path in (tmp_path / "site").glob("*.html")}
    assert {page.stem for page in (ROOT / "docs").glob("*.md")} <= set(pages)
    words = {name: html.unescape(re.sub(r"<[^>]+>", "", text)) for name, text in pages.items()}
    for _, settings in reference.all_settings().values():
        assert all(setting.key in words["settings"] for setting in settings)
    assert all(f"{name}¶" in words["commands"] for name, _ in reference.all_commands())
    assert all(f'id="concont.{name}"' in pages["api"] for name in PUBLIC)
    # Nor does a reader's browser load anything from elsewhere.
    loaded = r"<(?:script|img)[^>]*src=\"(https?:[^\"]*)|<link[^>]*stylesheet[^>]*href=\"(https?:)"
    assert [found for text in pages.values() for found in re.findall(loaded, text)] == []


@pytest.mark.slow
def test_the_example_of_the_estimator_runs(tmp_path, monkeypatch, capsys):
    text = (ROOT / "docs" / "estimator.md").read_text("utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(code, {})
    accuracy, scores = capsys.readouterr().out.splitlines()
    assert float(accuracy) > 0.6
    assert re.fullmatch(r"\[0\.\d+ 0\.\d+\]", scores)
    assert list(tmp_path.iterdir()) == []
