"""The pages beside the code say what is true of it."""

import importlib.util
import json
import re
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

import concont
import oracles
from concont.methods import METHODS
from concont.types import Method, Nets
from concont.version import __version__
from toys import LinearNet, problem

ROOT = Path(__file__).parent.parent


def read(name):
    return (ROOT / name).read_text("utf-8")


@pytest.fixture
def example(tmp_path, monkeypatch):
    """The method that CONTRIBUTING.md adds, loaded from the page as a file of its own."""
    (block,) = re.findall(r"^```python\n(.*?)^```$", read("CONTRIBUTING.md"), re.DOTALL | re.M)
    path = tmp_path / "uniform.py"
    path.write_text(block)
    spec = importlib.util.spec_from_file_location("concont.methods.uniform", path)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    monkeypatch.setitem(METHODS, "uniform", module.Uniform)
    return module.Uniform


def test_the_example_method_computes_what_it_says(example):
    method, net, batch = example(), LinearNet(2), problem()
    assert isinstance(method, Method)
    out = method.losses(Nets(net, net), method.init_state(6, 4, 5), batch)
    logits = net.logits(batch.views["weak"].flatten(1)).tolist()
    rows = oracles.uniform_cross_entropy(logits, batch.candidates.tolist())
    assert out.total.item() == pytest.approx(sum(rows) / len(rows))
    assert out.terms["loss_part"].item() == pytest.approx(out.total.item())


def test_the_example_method_trains(example, tmp_path, toy_arrays, toy_config):
    config = {**toy_config, "method": {"name": "uniform"}}
    config["train"] = {**config["train"], "epochs": 20}
    run = concont.train(config, data=toy_arrays, out=tmp_path / "run")
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    losses = [json.loads(line)["loss_part"] for line in lines]
    assert run.settings.method == example()
    assert run.settings.data.unlabeled is False
    assert len(losses) == 20
    assert losses[-1] < losses[0]
    assert run.summary["accuracy_last"] > 0.9


def test_contributing_names_what_is_there():
    page, targets = read("CONTRIBUTING.md"), re.findall(r"^(\w+):", read("Makefile"), re.M)
    named = re.findall(r"`make (\w+)`", page)
    assert {"demo", "test", "quick", "lock", "wheel"} <= set(named) <= set(targets)
    paths = re.findall(r"`((?:src|tests|docs)/[\w/.]+)`", page)
    missing = [path for path in paths if not (ROOT / path).exists()]
    assert set(missing) <= {"src/concont/methods/uniform.py"}  # the example's
    assert len(paths) > 5


def test_every_method_is_in_the_contract_that_keeps_methods_apart():
    contracts = tomllib.loads(read("pyproject.toml"))["tool"]["importlinter"]["contracts"]
    (apart,) = (c for c in contracts if c["name"] == "No method imports another")
    assert f'"{apart["name"]}"' in read("CONTRIBUTING.md")
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
