"""The pages beside the code say what is true of it."""

import importlib.util
import json
import re
import sys
import tomllib
from pathlib import Path

import pytest
import torch
import yaml

import concont
import oracles
from concont.methods import METHODS
from concont.types import Method, Nets
from concont.version import __version__
from toys import LinearNet, double, problem

ROOT = Path(__file__).parent.parent


def read(name):
    return (ROOT / name).read_text("utf-8")


@pytest.fixture
def example(tmp_path, monkeypatch):
    """The method that docs/add-a-method.md adds, loaded from the page as a file of its own."""
    (block,) = re.findall(r"^```python\n(.*?)^```$", read("docs/add-a-method.md"), re.DOTALL | re.M)
    path = tmp_path / "guided.py"
    path.write_text(block)
    spec = importlib.util.spec_from_file_location("concont.methods.guided", path)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    monkeypatch.setitem(METHODS, "guided", module.Guided)
    return module.Guided


def test_the_example_method_computes_what_it_says(example):
    method, net, batch = example(threshold=0.1), LinearNet(2), problem()
    assert isinstance(method, Method)
    state = double(method.init_state(batch.candidates, 5))
    out = method.losses(Nets(net, net), state, batch)
    logits = net.logits(batch.views["weak"].flatten(1)).tolist()
    rows = oracles.uniform_cross_entropy(logits, batch.candidates.tolist())
    partial = sum(r for r, y in zip(rows, batch.candidates.tolist(), strict=True) if not all(y))
    assert out.total.item() >= partial / len(rows) > 0
    method.commit(Nets(net, net), state, batch, out)
    assert torch.equal(state["table"], out.memory["table"].to(state["table"]))


def test_the_example_method_trains(example, tmp_path, toy_arrays, toy_config):
    config = {**toy_config, "method": {"name": "guided"}}
    config["train"] = {**config["train"], "epochs": 20}
    run = concont.train(config, data=toy_arrays, out=tmp_path / "run")
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    losses = [json.loads(line)["loss_part"] for line in lines]
    assert run.settings.method == example()
    assert run.settings.data.unlabeled is True
    assert len(losses) == 20
    assert losses[-1] < losses[0]
    assert run.summary["accuracy_last"] > 0.9


def test_contributing_names_what_is_there():
    page = read("CONTRIBUTING.md")
    targets = re.findall(r"^(\w+):", read("Makefile"), re.M)
    named = re.findall(r"`make (\w+)`", page)
    assert {"demo", "test", "quick", "lock", "wheel"} <= set(named) <= set(targets)
    pages = page + read("docs/add-a-method.md")
    paths = re.findall(r"`((?:src|tests|docs)/[\w/.]+)`", pages)
    missing = [path for path in paths if not (ROOT / path).exists()]
    assert set(missing) <= {"src/concont/methods/guided.py"}  # the example's
    assert len(paths) > 5


def test_every_method_is_in_the_contract_that_keeps_methods_apart():
    contracts = tomllib.loads(read("pyproject.toml"))["tool"]["importlinter"]["contracts"]
    (apart,) = (c for c in contracts if c["name"] == "No method imports another")
    assert f'"{apart["name"]}"' in read("docs/add-a-method.md").replace("\n", " ")
    files = (ROOT / "src" / "concont" / "methods").glob("[!_]*.py")
    assert sorted(apart["modules"]) == sorted(f"concont.methods.{path.stem}" for path in files)


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
