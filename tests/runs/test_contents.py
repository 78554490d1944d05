import json

import pytest

from concont.errors import DataError
from concont.runs.contents import (
    CONTENTS,
    CURES,
    START_AFRESH,
    check_data,
    check_line,
    name_cure,
)

DATA = {
    "classes": ["a", "b"],
    "shape": [8, 8, 1],
    "normalisation": {"mean": [0.5], "std": [0.1]},
    "digest": "abc",
    "sets_hash": "def",
    "n_train": 3,
}
LINE = {
    **{"epoch": 1, "step": 2, "seconds": 0.5, "accuracy": None, "accuracy_best": 0.5},
    **{"accuracy_momentum": None, "thresholds": [0.7, 0.8], "loss": float("nan"), "own": 3},
}


def test_what_a_run_writes_passes():
    check_data(json.dumps(DATA))
    check_data(json.dumps(DATA | {"normalisation": None, "shape": [5], "fit": "crop"}))
    check_line(json.dumps(LINE))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"classes": []}, "classes: "),
        ({"classes": [1, 2]}, "classes.0: "),
        ({"shape": "8"}, "shape: "),
        ({"shape": [8, 0, 1]}, "shape.1: "),
        ({"shape": [1, 2, 3, 4]}, "shape: "),
        ({"normalisation": {"mean": [0.5]}}, "it has no normalisation.std"),
        ({"normalisation": 3}, "normalisation: "),
        ({"digest": None}, "digest: "),
        ({"fit": "bend"}, "fit: "),
    ],
)
def test_data_of_another_kind_is_refused(change, message):
    with pytest.raises(DataError, match=message):
        check_data(json.dumps(DATA | change))


@pytest.mark.parametrize("change", [{"epoch": "1"}, {"step": None}, {"thresholds": 0.7}])
def test_a_line_of_another_kind_is_refused(change):
    (name,) = change
    with pytest.raises(DataError, match=f"^{name}: "):
        check_line(json.dumps(LINE | change))


@pytest.mark.parametrize("name", ["epoch", "step", "seconds", "accuracy", "thresholds"])
def test_a_line_that_lacks_something_is_refused(name):
    with pytest.raises(DataError, match=f"^it has no {name}$"):
        check_line(json.dumps({key: value for key, value in LINE.items() if key != name}))


def test_every_file_has_a_cure():
    assert set(CURES) < set(CONTENTS)
    assert name_cure("config.yaml") == START_AFRESH
    assert "--resume" in name_cure("model.safetensors")
