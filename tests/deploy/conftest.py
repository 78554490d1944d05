import pytest

import concont
from concont.config.start import resolve_start
from concont.deploy.export import export_run
from exports import train_toy


@pytest.fixture(scope="session")
def run(tmp_path_factory):
    return train_toy(tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="session")
def continued(run, tmp_path_factory):
    """A run that began from the weights of the other."""
    settings = resolve_start(run.path, {"train": {"epochs": 1}})
    return concont.train(settings, out=tmp_path_factory.mktemp("continued") / "run")


@pytest.fixture(scope="session")
def exported(run, tmp_path_factory):
    """The run as an ONNX file."""
    return export_run(run, tmp_path_factory.mktemp("exported") / "model.onnx", "onnx", "MIT")
