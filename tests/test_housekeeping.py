"""The pages beside the code say what is true of it."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

import concont
import oracles
from concont.config.registry import load_reference
from concont.config.resolve import resolve
from concont.types import Method, Nets
from concont.version import __version__
from processes import concont as command
from toys import C, D, LinearNet, all_sets, double, near, scores, uniform, visit

ROOT = Path(__file__).parent.parent


def read(name):
    return (ROOT / name).read_text("utf-8")


@pytest.fixture
def block():
    """The file that docs/add-a-method.md adds."""
    (text,) = re.findall(r"^```python\n(.*?)^```$", read("docs/add-a-method.md"), re.DOTALL | re.M)
    return text


@pytest.fixture
def reference(block, tmp_path):
    """The file, outside the package, and the class in it."""
    path = tmp_path / "guided.py"
    path.write_text(block)
    return f"{path}:Guided"


@pytest.fixture
def example(reference):
    """That class."""
    kind, _ = load_reference(reference)
    return kind


def test_the_example_method_computes_what_it_says(example):
    limits = {"threshold_lower": 0.85, "threshold_upper": 0.95, "threshold_rate": 0.1}
    method = example(pace=0.7, threshold=0.9, **limits)
    assert isinstance(method, Method)
    sets, kinds = all_sets(), set()
    state, table, tau = double(method.init_state(sets, D)), uniform(sets), [0.9] * C
    for epoch in range(6):
        net, batch = LinearNet(epoch), visit(sets, epoch, epoch)
        members, logits = batch.candidates.tolist(), scores(net, batch, "weak")
        own = [table[row] for row in batch.index.tolist()]
        probs = [oracles.softmax(row) for row in logits]
        score, labels = oracles.partial_confidence(probs, members, (1, 1, 1))
        sure = [s >= tau[j] for s, j in zip(score, labels, strict=True)]
        losses = zip(oracles.soft_cross_entropy(logits, own), sure, members, strict=True)
        total = oracles.mean([x if c or not all(y) else 0.0 for x, c, y in losses])

        out = method.losses(Nets(net, net), state, batch)
        assert out.total.item() == pytest.approx(total, abs=1e-6)
        assert out.terms["loss_table"].item() == pytest.approx(total, abs=1e-6)
        assert near(state["table"], table, 1e-6)  # nothing is written before the step

        method.commit(Nets(net, net), state, batch, out)
        now = oracles.inside_softmax(logits, members)
        for row, old, new in zip(batch.index.tolist(), own, now, strict=True):
            table[row] = [0.7 * a + 0.3 * b for a, b in zip(old, new, strict=True)]
        tau = oracles.thresholds(tau, labels, sure, *limits.values())
        assert near(state["table"], table, 1e-6)
        assert near(state["tau"], tau, 1e-6)
        kinds |= {(all(y), c) for y, c in zip(members, sure, strict=True)}
    assert len(kinds) == 4  # with and without a set, confident and not


@pytest.mark.parametrize("data", ["digits", "cifar100", "fashion-mnist"])
def test_the_example_method_takes_the_thresholds_of_the_data(example, reference, data):
    flags = {"data": {"source": data}}
    named = {"name": reference}
    found = resolve({**flags, "method": named}, code=reference)
    assert (found.optimizer.lr == 0.02) is (data == "cifar100")  # the paper's, on which it builds
    found, own = found.method, resolve(flags).method
    names = ("threshold", "threshold_lower", "threshold_upper", "threshold_rate")
    assert found == example(**{name: getattr(own, name) for name in names})


@pytest.mark.parametrize("command", [["check"], ["format", "--check"]])
def test_the_example_method_would_pass_the_linter(block, command):
    name = "src/concont/methods/guided.py"
    ruff = [sys.executable, "-m", "ruff", *command, "--stdin-filename", name, "-"]
    done = subprocess.run(ruff, cwd=ROOT, input=block, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_example_method_trains(reference, tmp_path, toy_arrays, toy_config):
    config = {**toy_config, "method": {"name": reference}}
    config["train"] = {**config["train"], "epochs": 20, "evaluate_every": 1}
    run = concont.train(config, data=toy_arrays, out=tmp_path / "run")
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    assert run.settings.data.unlabeled is True
    for line in map(json.loads, lines):
        assert line["loss_table"] > 0
        assert 0 < line["learning"] <= 1
        assert len(line["thresholds"]) == 2
    assert len(lines) == 20
    assert (tmp_path / "run" / "verdict.json").is_file()
    assert run.summary["accuracy_last"] > 0.9


@pytest.mark.slow
def test_the_commands_of_the_page_about_methods_work(block, tmp_path):
    (text,) = re.findall(r"^```sh\n(.*?)^```$", read("docs/add-a-method.md"), re.DOTALL | re.M)
    (tmp_path / "path" / "to").mkdir(parents=True)
    (tmp_path / "path" / "to" / "guided.py").write_text(block)
    small = {"train": ["--epochs", "1", "--device", "cpu"], "bench": ["--images", "40"]}
    small["bench"] += ["--image-size", "8", "--steps", "1", "--no-plain"]
    for line in text.splitlines():
        program, *words = line.split()
        own = [] if "--resume" in words else small.get(words[0], [])
        done = command(*words, *own, cwd=tmp_path)
        assert program == "concont"
        assert done.returncode == 0, (line, done.stderr)


def test_the_example_without_a_network_runs():
    (code,) = re.findall(r"^```python\n(.*?)^```$", read("docs/classic.md"), re.DOTALL | re.M)
    *lines, last = code.splitlines()
    names = {}
    exec("\n".join(lines), names)
    assert names["model"].labels_.shape == (1500,)
    assert eval(last, names) > 0.75


def test_contributing_names_what_is_there():
    page = read("CONTRIBUTING.md")
    targets = re.findall(r"^(\w+):", read("Makefile"), re.M)
    named = re.findall(r"`make (\w+)`", page)
    assert {"demo", "test", "quick", "lock", "wheel"} <= set(named) <= set(targets)
    pages = page + read("docs/add-a-method.md")
    paths = re.findall(r"`((?:src|tests|docs)/[\w/.]+)`", pages)
    missing = [path for path in paths if not (ROOT / path).exists()]
    examples = {"src/concont/methods/guided.py", "tests/methods/test_guided.py"}
    assert set(missing) <= examples
    assert len(paths) > 3


def test_every_method_is_in_the_contract_that_keeps_methods_apart():
    contracts = tomllib.loads(read("pyproject.toml"))["tool"]["importlinter"]["contracts"]
    (apart,) = (c for c in contracts if c["name"] == "No method imports another")
    assert f'"{apart["name"]}"' in read("docs/add-a-method.md").replace("\n", " ")
    assert (apart["type"], apart["modules"]) == ("independence", ["concont.methods.*"])


def test_the_citation_file_is_complete():
    citation = yaml.safe_load(read("CITATION.cff"))
    assert citation["cff-version"] == "1.2.0"
    assert citation["message"]
    assert (citation["type"], citation["title"]) == ("software", "concont")
    assert citation["authors"] == [{"name": "the concont authors"}]
    assert citation["version"] == __version__
    assert citation["license"] == tomllib.loads(read("pyproject.toml"))["project"]["license"]
    (paper,) = citation["references"]
    assert (paper["type"], paper["year"]) == ("conference-paper", 2024)
    assert paper["title"] in " ".join(read("README.md").split())
    names = ["Wang", "Zhao", "Zhu", "Li", "Liu", "Xia"]
    assert [author["family-names"] for author in paper["authors"]] == names
    assert all(author["given-names"] for author in paper["authors"])


def test_the_changelog_names_this_version():
    text = read("CHANGELOG.md")
    newest = re.split(r"^## ", text, flags=re.M)[1]
    heading, body = newest.split("\n", 1)
    assert re.search(rf"\b{re.escape(__version__)}\b", heading + body)
    kinds = "Added|Changed|Deprecated|Removed|Fixed|Security"
    assert re.findall(rf"^### ({kinds})$", newest, re.M) == re.findall(r"^### (.*)$", newest, re.M)
    assert "### " in newest
