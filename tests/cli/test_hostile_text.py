"""Names that a terminal, or Rich, would obey reach neither, in no command's output or errors."""

import json
import re

import numpy as np
import pytest
import yaml

from concont.config.resolve import resolve
from concont.sweep.record import key_of, write
from image_tables import make_images, write_csv
from processes import concont
from refusals import run_here
from sweeps import record_of

NASTY = (
    *("\x1b]0;x\x07", "[link=http://x]y[/link]", "[red]", "[/x]", "two\nlines"),
    *("\u202egnp.exe", "\x9b31m", "\u2066a\u2069", "a\u200bb", "\r\x08"),
)
NAME = "".join(NASTY)
SMALL = ("--epochs", "1", "--device", "cpu", "--recipe", "small.yaml")
SETTINGS = {
    "model": {"name": "small", "width": 4, "hidden": 8, "embedding": 8},
    "method": {"queue": 32},
    "train": {"batch_size": 8, "checkpoint_every": 0},
}


def is_plain(done, lines=None):
    """Nothing but printable text and ends of lines; what is in brackets is shown as it is."""
    text = done.stdout + done.stderr
    assert "Traceback" not in text
    odd = {letter for letter in text if not letter.isprintable() and letter != "\n"}
    assert not odd, (done.args, text)
    assert lines is None or done.stderr.count("\n") == lines, done.stderr
    return text


def shows(text, name):
    """Whether the name stands there whole, escaped; a narrow column folds it."""
    escaped = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in name)
    return re.sub(r"\s", "", escaped) in re.sub(r"[\s│]", "", text)


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """A table whose classes, files and voters have such names, and settings that train at once."""
    folder = tmp_path_factory.mktemp("hostile")
    classes = [name.replace("\n", " ").replace("\r", " ") for name in NASTY]
    files = [f"{k}[/x]\x1b[31m\u202e.png" for k in range(len(classes))]
    make_images(folder / "photos", files)
    rows = [[name, f"{classes[k]}|{classes[k - 1]}"] for k, name in enumerate(files)]
    write_csv(folder / "t.csv", rows)
    votes = [[name, f"who {c}", c] for name in files for c in classes[:3]]
    write_csv(folder / "v.csv", votes, ("image", "annotator", "label"))
    (folder / "small.yaml").write_text(yaml.safe_dump(SETTINGS))
    return folder


@pytest.fixture
def run(here, capsys, monkeypatch):
    monkeypatch.chdir(here)
    monkeypatch.setenv("CONCONT_CACHE", str(here / "cache"))
    monkeypatch.setenv("COLUMNS", "200")

    def run(*words):
        return run_here(capsys, *words)

    return run


TABLE = ("t.csv", "--images", "photos")


def test_tables_and_votes(run, here):
    checked = is_plain(run("data", "check", *TABLE))
    assert shows(checked, "[/x]\x1b[31m\u202e.png") or "0 errors" in checked
    made = is_plain(run("data", "from-votes", "v.csv", "--images", "photos", "-o", "new.csv"))
    assert shows(made, "[link=http://x]y[/link]")
    assert shows(made, "who [red]")
    write_csv(here / "bad.csv", [[NAME.replace("\n", " "), "a|a|"], ["no.png", NAME]])
    is_plain(run("data", "check", "bad.csv", "--images", "photos", "--classes", "a,b"))
    is_plain(run("train", "--data", "bad.csv", "--images", "photos"), lines=1)
    added = run("data", "add-votes", "t.csv", "v.csv", "--images", "photos", "-o", "more.csv")
    is_plain(added)


def test_a_run_and_what_is_asked_of_it(run):
    trained = run("train", "--data", *TABLE, *SMALL, "--out", "run[/x]\x1b")
    is_plain(trained)
    assert trained.returncode == 0, trained.stderr
    is_plain(run("train", "--resume", "run[/x]\x1b"))
    is_plain(run("train", "--data", *TABLE, *SMALL, "--out", "run[/x]\x1b"), lines=1)
    figures = is_plain(run("evaluate", "run[/x]\x1b", "--data", *TABLE))
    resolved = run("resolve", "run[/x]\x1b", "-o", "labels.csv")
    assert resolved.returncode == 0, resolved.stderr
    is_plain(resolved)
    assert figures is not None
    predicted = run("predict", "run[/x]\x1b", "photos", "--out", "p.csv")
    assert predicted.returncode == 0, predicted.stderr
    is_plain(run("predict", "run[/x]\x1b", "photos", f"no{NAME}.png", "--out", "q.csv"), lines=2)


def test_arrays(run, here):
    x, y = np.zeros((8, 8, 8), np.uint8), np.arange(8) % 2
    np.savez(here / "key.npz", x_train=x, **{f"y_trainn{NAME}".replace("/", ""): y})
    is_plain(run("train", "--data", "key.npz"), lines=1)
    np.savez(here / "same.npz", x_train=x, y_train=y, classes=np.array([NAME, NAME]))
    is_plain(run("train", "--data", "same.npz"), lines=1)
    np.savez(here / "sets.npz", labeled=y > 0, candidates=np.ones((8, 2), bool), data=NAME, hash="")
    is_plain(run("data", "candidates", "--read", "sets.npz"), lines=1)


def test_what_a_process_logs(here):
    x, y = np.zeros((8, 8, 8), np.uint8), np.arange(8) % 2
    np.savez(here / "more.npz", x_train=x, y_train=y, **{f"z{NAME}".replace("/", ""): y})
    done = concont("data", "candidates", "--data", "more.npz", "--out", "c.npz", cwd=here)
    assert done.returncode == 0, done.stderr
    assert "not read: z\\x1b]0;x\\x07" in is_plain(done, lines=1)


@pytest.mark.parametrize(
    "words",
    [
        ("train", "--data", NAME),
        ("train", "--data", f"{NAME}.npz"),
        ("train", "--data", "digits", "--recipe", NAME),
        ("train", "--data", "digits", "--set", NAME),
        ("train", "--data", "digits", "--set", f"model.{NAME}=1"),
        ("train", "--data", "digits", "--set", f"model.name={NAME}"),
        ("train", "--data", "digits", "--method", NAME),
        ("train", "--resume", NAME),
        ("train", "--config", NAME),
        ("evaluate", NAME),
        ("predict", NAME, "photos"),
        ("predict", "photos", NAME),
        ("resolve", NAME),
        ("data", "candidates", "--read", NAME),
        ("data", "candidates", "--data", "digits", "--out", f"no/{NAME}"),
        ("data", "check", NAME),
        ("data", "from-votes", NAME, "--images", "photos", "-o", "x.csv"),
        ("data", "from-votes", "v.csv", "--images", NAME, "-o", "x.csv"),
        ("results", "merge", NAME),
        ("results", "forget", NAME),
        ("results", "--method", NAME),
        ("results", "--against", NAME),
        ("results", "--by", f"x.{NAME}"),
        ("reproduce", NAME),
        ("reproduce", "table4", "--methods", NAME),
        ("sweep", NAME, "--folder", "s"),
        ("bench", "--run", NAME),
    ],
    ids=lambda words: " ".join(words).encode("unicode_escape").decode()[:40],
)
def test_what_is_refused_is_told_in_one_plain_line(words, run):
    done = run(*words)
    assert done.returncode in (1, 2) or words[:2] == ("results", "--by")
    is_plain(done, lines=1)


@pytest.mark.parametrize(
    "text",
    [f"{json.dumps(NAME)}: 1", f"model: {{{json.dumps(NAME)}: 1}}", f"model: {json.dumps(NAME)}"],
)
def test_files_of_settings(text, run, here):
    (here / "odd.yaml").write_text(text)
    for words in (
        ("train", "--data", "digits", "--recipe", "odd.yaml"),
        ("train", "--config", "odd.yaml"),
        ("sweep", "odd.yaml", "--folder", "s"),
    ):
        is_plain(run(*words), lines=1)


def test_a_record_does_not_break_the_results(run, here):
    settings = resolve({"data": {"source": "digits"}})
    odd = {"recipe": "[/x]", "environment": {"device": NAME, "commit": "[red]"}, "method": NAME}
    record = record_of(settings) | odd
    record["settings"]["data"]["seed"] = 77
    write(here / "odd.json", record)
    strange = record_of(settings, recipe=NAME) | {"settings": {NAME: 1}, "settings_hash": NAME}
    write(here / "strange.json", strange)
    for name in ("odd.json", "strange.json"):
        assert run("results", "merge", name, "--folder", "r").returncode == 0
    shown = is_plain(run("results", "--folder", "r"))
    assert shows(shown, "[/x]")
    assert shows(shown, NAME)
    is_plain(run("results", "--by", "data.seed", "--folder", "r"))
    is_plain(run("results", "--by", "recipe", "--folder", "r"))
    is_plain(run("results", "--against", "paper", "--folder", "r"))
    forgotten = run("results", "forget", key_of(strange), "--why", NAME, "--folder", "r")
    assert forgotten.returncode == 0, forgotten.stderr
    assert is_plain(forgotten).startswith("forgotten: ")
    assert key_of(strange) not in is_plain(run("results", "--folder", "r"))


def test_names_in_a_sweep(run, here):
    content = {"base": {"recipe": "digits"}, "runs": [{"name": NAME, "train": {"epochs": 1}}]}
    (here / "s.yaml").write_text(json.dumps(content))
    shown = run("sweep", "s.yaml", "--folder", "s", "--dry-run")
    assert shown.returncode == 0, shown.stderr
    assert shows(is_plain(shown), NAME)
