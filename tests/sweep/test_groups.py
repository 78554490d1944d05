"""Runs by some of their settings: nothing is averaged in silence that does not belong together."""

import pytest

from concont.config.resolve import resolve
from concont.errors import UsageError
from concont.sweep.groups import group_records
from sweeps import record_of


def made(accuracy, seed=1, **sections):
    flags = {"data": {"source": "digits", "seed": seed}, "train": {"seed": seed, "epochs": 3}}
    merged = {name: {**flags.get(name, {}), **values} for name, values in sections.items()}
    return record_of(resolve({**flags, **merged}), accuracy)


def test_a_row_a_value_with_mean_spread_and_number():
    records = [
        made(0.6, method={"threshold": 1.0}),
        made(0.5, method={"threshold": 0.9}),
        made(0.7, 2, method={"threshold": 0.9}),
    ]
    groups = group_records(records, ["method.threshold"])
    assert groups.rows == [
        {
            "method.threshold": 0.9,
            "accuracy_mean": pytest.approx(0.6),
            "accuracy_std": pytest.approx(0.141421),
            "n": 2,
        },
        {"method.threshold": 1.0, "accuracy_mean": 0.6, "accuracy_std": None, "n": 1},
    ]
    assert (groups.differing, groups.left_out, groups.evaluated_on) == ([], 0, ["test"])


def test_what_differs_inside_a_group_is_named():
    records = [
        made(0.5, method={"threshold": 0.9}, optimizer={"lr": 0.01}),
        made(0.7, method={"threshold": 0.9}, train={"epochs": 4}),
        made(0.7, method={"threshold": 1.0}, train={"batch_size": 32, "device": "cpu"}),
    ]
    groups = group_records(records, ["method.threshold"])
    assert groups.differing == ["optimizer.lr", "train.epochs"]  # not what differs between groups
    assert group_records(records[:2], ["train.epochs"]).differing == []


def test_a_hold_out_is_never_averaged_with_a_test_set():
    records = [made(0.5), made(0.9, data={"holdout": 0.1})]
    groups = group_records(records, ["train.epochs"])
    rows = {row["evaluated_on"]: (row["accuracy_mean"], row["n"]) for row in groups.rows}
    assert rows == {"test": (0.5, 1), "holdout": (0.9, 1)}
    assert groups.differing == []
    assert groups.evaluated_on == ["holdout", "test"]
    early = records[1] | {"evaluated_on": None}
    assert len(group_records([records[0], early], ["train.epochs"]).rows) == 2
    (alone,) = group_records(records[1:], ["train.epochs"]).rows
    assert list(alone) == ["train.epochs", "accuracy_mean", "accuracy_std", "n"]


def test_values_of_every_kind_are_told_apart_and_put_in_order():
    records = [
        made(0.5, train={"partial_share": 0.25}),
        made(0.5, train={"partial_share": None}),
        made(0.5, method={"name": "sspl"}),
    ]
    by_share = group_records(records, ["train.partial_share"]).rows
    assert [(row["train.partial_share"], row["n"]) for row in by_share] == [(None, 2), (0.25, 1)]
    by_name = group_records(records, ["method.name", "data.labeled"])
    assert [row["method.name"] for row in by_name.rows] == ["concont", "sspl"]
    spans = group_records(records[:1], ["views.weak.crop"]).rows
    assert spans[0]["views.weak.crop"] == [0.7, 1.0]


def test_a_setting_newer_than_a_record_has_its_default():
    record = made(0.5)
    del record["settings"]["train"]["partial_share"]
    assert group_records([record], ["train.partial_share"]).rows[0]["train.partial_share"] is None


def test_what_has_no_accuracy_or_cannot_be_read_is_counted_apart():
    records = [made(0.5), made(0.5) | {"accuracy_last": None}, made(0.5) | {"settings": {"x": 1}}]
    groups = group_records(records, ["train.epochs"])
    assert (groups.rows[0]["n"], groups.left_out) == (1, 2)


@pytest.mark.parametrize("records", [[], [made(0.5)]])
def test_an_unknown_setting_is_refused_with_the_nearest(records):
    for name, hint in (
        ("method.treshold", "did you mean method.threshold?"),
        ("xyz", "write it as section.key"),
    ):
        with pytest.raises(UsageError, match=rf"no setting {name}; {hint}".replace("?", r"\?")):
            group_records(records, ["train.epochs", name])
    assert group_records(records, ["method.controlled"]).rows == [
        {"method.controlled": None, "accuracy_mean": 0.5, "accuracy_std": None, "n": 1}
        for _ in records
    ]
