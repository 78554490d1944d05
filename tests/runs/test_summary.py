import json

import pytest

from concont.errors import DataError
from concont.runs.folder import RunFolder
from concont.runs.summary import Summary

# All that the first version of a run wrote.
FIRST = {
    "method": "concont",
    "recipe": "digits",
    "data": "digits",
    "labeled": 0.1,
    "ambiguity": 0.3,
    "unlabeled": True,
    "seed": 1,
    "epochs": 2,
    "accuracy_last": 0.5,
    "accuracy_best": 0.75,
    "seconds": 3.5,
    "settings_hash": "d5b44e2a164ba802",
}


def test_it_comes_back_from_its_file_as_it_was(tmp_path):
    summary = Summary(**FIRST, seconds_by={"steps": 3.0}, details={"rounds": 3, "lam": None})
    folder = RunFolder(tmp_path)
    folder.write_summary(summary)
    assert folder.read_summary() == summary
    content = folder.read_json("summary.json")
    assert content.items() >= {**FIRST, "rounds": 3, "lam": None}.items()
    assert "details" not in content


def test_an_older_one_has_defaults_and_a_newer_one_keeps_what_is_not_known():
    assert Summary.from_dict(FIRST) == Summary(**FIRST)
    assert Summary.from_dict(FIRST).steps is None
    newer = {**FIRST, "carbon_kg": 0.1, "nested": {"a": [1, 2]}}
    summary = Summary.from_dict(newer)
    assert summary.details == {"carbon_kg": 0.1, "nested": {"a": [1, 2]}}
    assert summary.as_dict().items() >= newer.items()


def test_values_are_found_by_their_names_too():
    summary = Summary.from_dict({**FIRST, "rounds": 3})
    assert (summary["accuracy_last"], summary["rounds"]) == (0.5, 3)
    assert dict(summary) == summary.as_dict()
    assert (summary.get("nosuch", 7), "epochs" in summary, "details" in summary) == (7, True, False)
    with pytest.raises(KeyError):
        summary["nosuch"]


@pytest.mark.parametrize("name", FIRST)
def test_every_name_of_the_first_version_is_needed(name):
    content = {key: value for key, value in FIRST.items() if key != name}
    with pytest.raises(DataError, match=f"^it has no {name}$"):
        Summary.from_dict(content)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({**FIRST, "accuracy_last": 90.5}, "accuracy_last: Input should be less than or equal"),
        ({**FIRST, "unlabeled": 1}, "unlabeled: Input should be a valid boolean"),
        ({**FIRST, "seconds": "3"}, "seconds: Input should be a valid number"),
    ],
)
def test_a_file_with_something_else_is_named_in_a_line(tmp_path, content, message):
    (tmp_path / "summary.json").write_text(json.dumps(content))
    with pytest.raises(
        DataError, match=rf"summary\.json is damaged: no summary of a run: {message}"
    ) as e:
        RunFolder(tmp_path).read_summary()
    assert "\n" not in str(e.value)


def test_a_list_is_no_summary():
    with pytest.raises(DataError, match="it holds no names with values"):
        Summary.from_dict([1])
