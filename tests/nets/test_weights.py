import os
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from concont.errors import DataError, UsageError
from concont.nets.weights import (
    digest_file,
    identify_weights,
    list_names,
    refuse_changed_weights,
    refuse_other_names,
)
from concont.runs.model_settings import Model

NAME = "timm:test_resnet"


@pytest.fixture
def path(tmp_path):
    found = tmp_path / "some.safetensors"
    save_file(
        {"a.weight": torch.ones(2), "b.weight": torch.ones(3), "fc.bias": torch.ones(1)}, found
    )
    return found


def test_a_file_is_known_by_its_full_path_and_content(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = identify_weights(Model(NAME, weights=path.name))
    assert found.weights == str(path)
    assert len(found.weights_digest) == 16
    copy = path.with_name("copy.safetensors")
    copy.write_bytes(path.read_bytes())
    assert identify_weights(Model(NAME, weights=str(copy))).weights_digest == found.weights_digest
    copy.write_bytes(path.read_bytes() + b" ")
    assert identify_weights(Model(NAME, weights=str(copy))).weights_digest != found.weights_digest
    assert identify_weights(Model()) == Model()
    named = Model(NAME, weights="pretrained")
    assert identify_weights(Model(NAME, weights="pretrained", weights_digest="x")) == named


def test_a_start_is_known_by_the_file_of_its_run_and_its_content(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.2").mkdir()
    file = path.rename(tmp_path / "run.2" / "model.safetensors")
    found = identify_weights(Model(start="run.2"))
    assert found.start == str(file)
    assert found == identify_weights(Model(start=str(file)))
    assert found.start_digest == digest_file(file)
    given = Model(NAME, weights="pretrained", start="run.2")  # never read
    assert identify_weights(given) == identify_weights(Model(NAME, start="run.2"))
    with pytest.raises(UsageError, match="weights .*none: No such file"):
        identify_weights(Model(start="none"))


def test_weights_that_are_not_there_are_one_line(tmp_path):
    path = tmp_path / "none.safetensors"
    with pytest.raises(UsageError, match=f"weights {path}: No such file"):
        identify_weights(Model(NAME, weights=str(path)))


def test_what_is_no_file_is_refused_before_it_is_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero"), tmp_path):
        with pytest.raises(UsageError, match=": no file"):
            digest_file(path)


def test_a_file_that_has_changed_is_refused(path):
    model = identify_weights(Model(NAME, weights=str(path)))
    refuse_changed_weights(model.weights_digest, path)
    refuse_changed_weights(None, path)
    save_file({"a.weight": torch.ones(1)}, path)
    with pytest.raises(DataError, match="have changed since these settings were written"):
        refuse_changed_weights(model.weights_digest, path)


def test_names_must_be_those_of_the_model(path):
    refuse_other_names(path, ["a.weight", "b.weight"], ("fc",))
    with pytest.raises(DataError, match="they lack c.weight, d.weight$"):
        refuse_other_names(path, ["a.weight", "b.weight", "d.weight", "c.weight"], ("fc",))
    with pytest.raises(DataError, match="they hold, and the model does not, b.weight, fc.bias$"):
        refuse_other_names(path, ["a.weight"], ())
    path.write_bytes(b"no weights at all")
    with pytest.raises(DataError, match="damaged, or no safetensors file"):
        refuse_other_names(Path(path), [], ())


def test_long_lists_are_cut():
    assert list_names(["a", "b", "c"]) == "a, b, c"
    assert list_names(["a", "b", "c", "d", "e"]) == "a, b, c and 2 more"
