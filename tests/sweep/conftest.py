import pytest

from concont.config.resolve import resolve
from concont.runs.folder import RunFolder
from concont.training.prepare import prepare
from sweeps import made_up_record


@pytest.fixture
def made_up():
    return made_up_record


@pytest.fixture
def run(tmp_path, toy_npz, toy_config):
    """A finished run on a file of the user's own."""
    toy_config["data"]["source"] = str(toy_npz)
    folder = RunFolder(tmp_path / "runs" / "one")
    for _ in prepare(resolve(toy_config), folder).execute():
        pass
    return folder
