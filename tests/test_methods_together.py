"""Every method learns from digits, and goes on after a stop as if there had been none."""

import pytest
import torch
from safetensors.torch import load_file

import concont
from concont.config.resolve import resolve
from concont.errors import Interrupted
from concont.methods import load_method, method_names
from concont.runs.folder import RunFolder
from concont.training.prepare import prepare
from concont.training.trainers import reopen_run
from toys import EVERY, all_sets, row_tables

pytestmark = pytest.mark.slow
ROWS, CLASSES = 1437, 10
LABELED = 718  # half of them
SYSTEMS = {**EVERY, "pico-unlabeled": EVERY["pico"]}
ALL_ROWS = ("dpll-controlled", "dpll-cpl", "pico-unlabeled")  # beside those that want them


QUICK = {  # settings for a hundred steps instead of a hundred thousand
    "concont": {"queue": 256, "momentum": 0.9},
    "pico": {
        "queue": 256,
        "momentum": 0.9,
        "repr_weight": 0.1,
        "prototype_momentum": 0.9,
        "confidence_momentum": [0.9, 0.5],
    },
}
# Thresholds of DPLL, where its controller has any.
BOUNDS = {"threshold_lower": 0.3, "threshold_upper": 0.8}
THRESHOLDS = {
    "dpll-controlled": {"threshold": 0.5, **BOUNDS},
    "dpll-cpl": {"threshold": 0.5},
}
RATES = {"dpll": 0.1, "lws": 0.2}


def config(system):
    """Short, but long enough to learn; the views are those of the recipe for digits."""
    name = SYSTEMS[system]["name"]
    everything = load_method(name).wants_unlabeled or system in ALL_ROWS
    return {
        "data": {"source": "digits", "labeled": 0.5, "ambiguity": 0.3, "unlabeled": everything},
        "model": {"name": "small", "width": 8, "hidden": 32, "embedding": 16},
        "method": {**QUICK.get(name, {}), **THRESHOLDS.get(system, {}), **SYSTEMS[system]},
        "optimizer": {"lr": RATES.get(name, 0.05)},
        "train": {
            "epochs": 7 if everything else 12,
            "batch_size": 64,
            "evaluate_every": 4,
            "checkpoint_every": 1000,
            "device": "cpu",
        },
    }


VARIANTS = [name for name in SYSTEMS if name not in method_names()]


@pytest.mark.parametrize(
    "system", [*method_names(), *(pytest.param(name, marks=pytest.mark.long) for name in VARIANTS)]
)
def test_it_learns_and_goes_on_after_a_stop_as_if_there_had_been_none(tmp_path, system):
    run = concont.train(config(system), out=tmp_path / "whole")
    assert run.summary["accuracy_last"] > 0.5  # of ten classes

    job = prepare(resolve(config(system)), RunFolder(tmp_path / "run"))
    middle = job.total_steps // 2 + 3  # of an epoch, and after PiCO's first
    assert middle % job.order.steps != 0
    with pytest.raises(Interrupted):
        for _ in job.execute(stop=lambda: job.state.step == middle):
            pass
    again = reopen_run(job.folder)
    assert again.state.step == middle
    for _ in again.execute():
        pass
    found, expected = (
        load_file(tmp_path / name / "model.safetensors") for name in ("run", "whole")
    )
    assert [name for name in expected if not torch.equal(found[name], expected[name])] == []

    kept, whole = (
        torch.load(tmp_path / name / "checkpoint.pt", weights_only=True)["memory"]
        for name in ("run", "whole")
    )
    assert [name for name in whole if not torch.equal(kept[name], whole[name])] == []
    rows = ROWS if job.settings.data.unlabeled else LABELED
    tables = {name for name, tensor in kept.items() if tensor.ndim and len(tensor) == rows}
    assert tables == row_tables(job.settings.method, all_sets(), dim=5)
    assert len(job.problem.rows) == rows


def test_the_bound_is_the_same_whatever_sets_are_asked_for(tmp_path):
    plain = config("supervised")
    plain["train"]["epochs"] = 2
    ends = []
    for name, data in {"few": {"labeled": 50, "ambiguity": 0.8}, "all": {}}.items():
        own = {**plain, "data": {"source": "digits", **data}}
        run = concont.train(own, out=tmp_path / name)
        ends.append((run.summary["settings_hash"], run.summary["accuracy_last"]))
        assert run.data["n_train"] == ROWS
    assert ends[0] == ends[1]
