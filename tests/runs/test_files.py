import pytest

from concont.config.resolve import resolve, write_yaml
from concont.runs.files import (
    CONTENTS,
    holds_settings,
    is_name_of_a_part,
    is_part_of_a_run,
    is_trace,
)


@pytest.mark.parametrize("name", [*CONTENTS, "events.out.tfevents.17.host.3.0"])
def test_what_a_run_writes_is_known_by_its_name(name, tmp_path):
    assert is_name_of_a_part(name)
    assert not is_part_of_a_run(tmp_path / name)  # it is not there
    (tmp_path / name).touch()
    assert is_part_of_a_run(tmp_path / name)


@pytest.mark.parametrize("name", ["notes.txt", "config.yml", "model.onnx"])
def test_other_files_are_not(name, tmp_path):
    (tmp_path / name).touch()
    assert not is_name_of_a_part(name)
    assert not is_part_of_a_run(tmp_path / name)


def test_locks_and_half_files_are_traces_and_results_are_not(tmp_path):
    for name in (".lock", ".config.yaml.12-0a1b2c3d.tmp", "checksums.json"):
        assert is_trace(tmp_path / name)
    assert not is_trace(tmp_path / "summary.json")


def test_settings_name_every_section(tmp_path):
    path = tmp_path / "config.yaml"
    assert not holds_settings(path)
    path.write_bytes(b"\xff")
    assert not holds_settings(path)
    path.write_text("data: {}\n")
    assert not holds_settings(path)
    path.write_text(write_yaml(resolve({}, "digits")))
    assert holds_settings(path)
