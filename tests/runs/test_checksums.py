"""Checksums find every damage, and a kill at any moment is no damage."""

import json
import shutil

import pytest

from concont.errors import DataError
from concont.runs import folder as folder_module
from concont.runs.checksums import NAME, Checksums, digest
from concont.runs.folder import RunFolder, write_text
from metrics_lines import metrics_line


def write_some(folder, rounds=3):
    """What a run does: files written again and again, a checkpoint that keeps the last one."""
    folder.checksums.expect_settings("0123")
    for number in range(rounds):
        folder.write_text("config.yaml", f"round: {number}\n")
        folder.append_metrics(metrics_line(number))
        folder.write(
            "checkpoint.pt",
            lambda path, number=number: path.write_text(f"state {number}") and None,
            "checkpoint.previous.pt",
        )


def files_of(folder):
    return [path.name for path in folder.path.iterdir() if path.name != NAME]


def test_every_file_fits_and_any_changed_byte_does_not(tmp_path):
    folder = RunFolder(tmp_path)
    write_some(folder)
    assert set(files_of(folder)) == {
        *("config.yaml", "metrics.jsonl", "checkpoint.pt", "checkpoint.previous.pt")
    }
    for name in files_of(folder):
        assert folder.checksums.fits(name)
        content = (folder / name).read_bytes()
        for damaged in (
            content[:-1],
            b"",
            bytes([content[0] ^ 4]) + content[1:],
            content[:-1] + bytes([content[-1] ^ 128]),
        ):
            (folder / name).write_bytes(damaged)
            assert not folder.checksums.fits(name), (name, damaged)
        (folder / name).write_bytes(content)
    folder.append_metrics(metrics_line(9))  # which only grew
    assert folder.checksums.fits("metrics.jsonl")


class Killed(BaseException):
    """The process ends here, and cleans nothing up."""


@pytest.mark.parametrize("again", [False, pytest.param(True, marks=pytest.mark.long)])
def test_a_kill_between_any_two_calls_of_the_system_is_no_damage(tmp_path, monkeypatch, again):
    """Every rename is one moment to be killed at; after it another start goes on, and is killed."""
    moments, system = [0, 0], folder_module.os.replace

    def replace(source, target):
        if moments[0] == moments[1]:
            raise Killed
        moments[0] += 1
        system(source, target)

    monkeypatch.setattr(folder_module.os, "replace", replace)
    for moment in range(40):
        folder = RunFolder(tmp_path / str(moment))
        folder.path.mkdir()
        for start in range(2 if again else 1):
            moments[:] = [0, moment + start]
            try:
                folder.checksums.settle()
                write_some(folder)
            except Killed:
                pass
            else:
                assert moment > 10
            moments[1] = -1
            for name in files_of(folder):
                assert folder.checksums.fits(name), (moment, start, name)
            folder.checksums.expect_settings("0123")


def test_settling_forgets_what_never_came(tmp_path):
    folder = RunFolder(tmp_path)
    folder.write_text("config.yaml", "now")
    coming = tmp_path / "coming"
    coming.write_text("then")
    folder.checksums.expect("config.yaml", coming)
    for text, fits in (("now", True), ("then", True), ("else", False)):
        (folder / "config.yaml").write_text(text)
        assert folder.checksums.fits("config.yaml") == fits
    (folder / "config.yaml").write_text("now")
    folder.checksums.settle()
    (folder / "config.yaml").write_text("then")
    assert not folder.checksums.fits("config.yaml")


def test_a_folder_without_checksums_is_as_it_is(tmp_path):
    folder = RunFolder(tmp_path)
    (folder / "config.yaml").write_text("old")
    assert folder.checksums.fits("config.yaml")
    assert folder.checksums.settings_hash is None
    folder.checksums.settle()
    assert not (folder / NAME).exists()


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: "",
        lambda text: "[]",
        lambda text: "{}",
        lambda text: "[" * 10**5,
        lambda text: text[: len(text) // 2],
        lambda text: text.replace('"0123"', '"0124"'),
        lambda text: json.dumps(json.loads(text) | {"files": 3}),
    ],
)
def test_damaged_checksums_are_named_and_can_be_done_without(tmp_path, damage):
    folder = RunFolder(tmp_path)
    write_some(folder, 1)
    path = folder / NAME
    path.write_text(damage(path.read_text()))
    with pytest.raises(DataError, match=r"checksums\.json is damaged; .* delete it to go on") as e:
        folder.checksums.fits("config.yaml")
    assert "\n" not in str(e.value)
    path.unlink()
    assert folder.checksums.fits("config.yaml")


def test_a_copy_of_the_folder_fits_too(tmp_path):
    folder = RunFolder(tmp_path / "one")
    folder.path.mkdir()
    write_some(folder)
    shutil.copytree(folder.path, tmp_path / "two")
    copied = Checksums(tmp_path / "two", write_text)
    assert all(copied.fits(name) for name in files_of(folder))
    assert copied.settings_hash == "0123"


def test_a_digest_is_of_the_first_bytes(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"abcdef")
    assert digest(path, 3).sha256.startswith("ba7816bf8f01cfea")  # SHA-256 of abc
    assert digest(path) == digest(path, 6)
    assert digest(path, 100).size == 6
