import pytest

from concont.config import resolve
from concont.engine.either import execute, prepare
from concont.repro.plan import settings_of
from concont.runs import RunFolder


def made_up_record(cell, seed=1, epochs=60, accuracy=0.5, **more):
    """A record as a run of the cell would leave it."""
    settings = settings_of(cell, seed, epochs)
    return {
        "settings_hash": settings.hash(),
        "settings": settings.as_dict(),
        "method": settings.method.name,
        "recipe": settings.recipe,
        "data": cell.data,
        "labeled": settings.data.labeled,
        "ambiguity": settings.data.ambiguity,
        "unlabeled": settings.data.unlabeled,
        "seed": seed,
        "epochs": epochs,
        "accuracy_last": accuracy,
        "accuracy_best": min(1.0, accuracy + 0.04),
        "curve": [[epochs, accuracy]],
        "seconds": 10.0,
        "environment": {"device": "a GPU", "commit": "abc", "clean": True},
        **more,
    }


@pytest.fixture
def made_up():
    return made_up_record


@pytest.fixture
def run(tmp_path, toy_npz, toy_config):
    """A finished run on a file of the user's own."""
    toy_config["data"]["source"] = str(toy_npz)
    folder = RunFolder(tmp_path / "runs" / "one")
    for _ in execute(prepare(resolve(toy_config), folder)):
        pass
    return folder
