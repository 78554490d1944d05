import pytest

from concont.repro.plan import settings_of


@pytest.fixture
def made_up():
    """A record as a run of a cell would leave it, with a chosen accuracy."""

    def make(cell, seed=1, epochs=60, accuracy=0.5, **more):
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
            "accuracy_best": accuracy,
            "curve": [[epochs, accuracy]],
            "seconds": 10.0,
            "environment": {"device": "a GPU", "commit": "abc", "clean": True},
            **more,
        }

    return make
