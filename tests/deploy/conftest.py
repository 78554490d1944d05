import pytest

from concont.deploy.export import export_run
from exports import train_toy


@pytest.fixture(scope="session")
def run(tmp_path_factory):
    return train_toy(tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="session")
def exported(run, tmp_path_factory):
    """The run as an ONNX file."""
    return export_run(run, tmp_path_factory.mktemp("exported") / "model.onnx", "onnx", "MIT")
