"""What a network says of its images, of tiny runs that are really trained."""

import numpy as np
import pytest

import concont
from concont.report.measured import measure_run
from image_tables import make_table


@pytest.fixture
def config(toy_config, toy_npz):
    toy_config["data"]["source"] = str(toy_npz)
    toy_config["train"]["epochs"] = 2
    return toy_config


def test_a_run_is_measured_on_its_own_images(config, tmp_path):
    run = concont.train(config, out=tmp_path / "run")
    measured = measure_run(run.path, review=7)
    figures = run.evaluate()
    assert measured.quality["confusion"] == figures["confusion"]
    assert measured.quality["calibration_error"] == pytest.approx(figures["calibration_error"])
    assert sum(each.n for each in measured.bins["as trained"]) == 20
    assert len(measured.resolution) == 40
    assert [card.rank for card in measured.cards] == list(range(1, 8))
    assert measured.cards[0].picture.startswith("data:image/png")
    assert measured.missing == ()


def test_a_hold_out_calibrates(config, tmp_path):
    images = np.random.RandomState(0).randint(0, 256, (150, 8, 8), np.uint8)
    np.savez(config["data"]["source"], x_train=images, y_train=np.arange(150) % 2)
    config["data"]["holdout"] = 0.4
    run = concont.train(config, out=tmp_path / "run")
    measured = measure_run(run.path, review=1)
    assert measured.resolution.calibration.n == 60
    assert set(measured.bins) == {"as trained", "calibrated"}
    surest = [
        sum(each.n * each.probability for each in bins) / 60 for bins in measured.bins.values()
    ]
    assert (surest[1] < surest[0]) == (measured.resolution.calibration.temperature > 1)


def test_data_that_is_gone_leaves_the_record(config, toy_npz, tmp_path):
    run = concont.train(config, out=tmp_path / "run")
    toy_npz.unlink()
    measured = measure_run(run.path, review=1)
    assert (measured.resolution, measured.quality, measured.cards) == (None, None, [])
    said, cure = measured.missing
    assert said.startswith("No map, review list or confusions: ")
    assert (str(tmp_path) in said, toy_npz.name in said, "\n" in said) == (False, True, False)
    assert cure == "If the data has been moved, say where it lies now: --data."


def test_data_that_was_moved_is_found_where_it_lies_now(config, toy_npz, tmp_path):
    run = concont.train(config, out=tmp_path / "run")
    moved = toy_npz.rename(tmp_path / "moved.npz")
    measured = measure_run(run.path, review=3, data=str(moved))
    assert (len(measured.cards), measured.missing) == (3, ())


def test_data_that_has_changed_is_not_taken_for_the_runs_own(config, toy_npz, tmp_path):
    run = concont.train(config, out=tmp_path / "run")
    with np.load(toy_npz) as arrays:
        changed = {**arrays, "x_train": arrays["x_train"][::-1]}
    np.savez(toy_npz, **changed)
    assert "trained on other data" in measure_run(run.path, review=1).missing[0]


def test_photos_that_are_gone_are_named_without_their_folder(config, tmp_path):
    table = make_table(tmp_path / "photos")
    config["data"] = {"source": str(table), "images": str(tmp_path / "photos")}
    run = concont.train(config, out=tmp_path / "run")
    (tmp_path / "photos").rename(tmp_path / "elsewhere")
    said, cure = measure_run(run.path, review=1).missing
    assert (str(tmp_path) in said, "photos" in said) == (False, True)
    assert cure.endswith("now: --data and --images.")


def test_weights_that_are_gone(config, tmp_path):
    run = concont.train(config, out=tmp_path / "run")
    (run.path / "model.safetensors").unlink()
    (said,) = measure_run(run.path, review=1).missing
    assert said.startswith("Nothing that needs the network: ")
    assert str(tmp_path) not in said


def test_a_method_that_gives_labels_alone_still_has_confusions(config, tmp_path):
    config["method"], config["data"]["labeled"] = {"name": "sspl"}, 1.0
    for section in ("views", "model", "optimizer", "train"):
        del config[section]
    run = concont.train(config, out=tmp_path / "run")
    measured = measure_run(run.path, review=1)
    assert np.sum(measured.quality["confusion"]) == 20
    assert (measured.resolution, measured.bins) == (None, {})
    assert [said.split(":")[0] for said in measured.missing] == [
        "No map and no review list",
        "No calibration",
    ]


def test_without_a_test_set_there_are_no_confusions(config, toy_arrays, tmp_path):
    own = {"x_train": toy_arrays["x_train"], "y_train": toy_arrays["y_train"]}
    np.savez(config["data"]["source"], **own)
    run = concont.train(config, out=tmp_path / "run")
    measured = measure_run(run.path, review=3)
    assert (measured.quality, len(measured.cards)) == (None, 3)
    assert measured.missing == (
        "No confusions and no calibration: there is no test set, and no images were held out.",
    )
