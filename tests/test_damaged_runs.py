"""Every file of a run damaged in every way: each command says which, and what to do, in a line."""

import json
import shutil
from itertools import product

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file

import concont
from refusals import run_here

# Which files each command reads, of which it is to find any damage by the checksum.
READ = {
    "evaluate": {"summary.json", "data.json", "config.yaml", "model.safetensors"},
    "predict": {"summary.json", "data.json", "config.yaml", "model.safetensors"},
    "merge": {
        *("summary.json", "data.json", "config.yaml"),
        *("metrics.jsonl", "verdict.json", "environment.json"),
    },
    "resume": {
        *("data.json", "config.yaml", "candidates.npz", "metrics.jsonl", "environment.json"),
        *("checkpoint.pt", "checkpoint.previous.pt"),
    },
}
SEALS = "checksums.json"
FILES = sorted(set().union(*READ.values()))
PAIRS = list(product(READ, FILES))
DAMAGES = {
    "empty": lambda content: b"",
    "binary": lambda content: bytes(range(256)) * 4,
    "half": lambda content: content[: len(content) // 2],
    "a line": lambda content: content[: content.find(b"\n") + 1],
    "a list": lambda content: b"[]\n",
    "names without values": lambda content: b"{}\n",
    "another kind of value": lambda content: (
        b'{"classes": 3, "earlier": 3, "epoch": {}, "files": 1}'
    ),
    "nested deeply": lambda content: b"[" * 10**5,
    "one letter": lambda content: content[:-2] + bytes([content[-2] ^ 1]) + content[-1:],
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A finished run on a file, two epochs long, and an image."""
    folder = tmp_path_factory.mktemp("whole")
    stream, labels = np.random.RandomState(0), np.arange(60) % 2
    images = stream.randint(0, 60, (60, 8, 8)).astype(np.uint8)
    images[labels == 1, :, 4:] += 150
    arrays = {"x_train": images[:40], "y_train": labels[:40]}
    np.savez(folder / "toy.npz", **arrays, x_test=images[40:], y_test=labels[40:])
    Image.fromarray(images[0]).save(folder / "image.png")
    settings = {
        "data": {"source": str(folder / "toy.npz"), "labeled": 0.5, "ambiguity": 0.3},
        "model": {"name": "small", "width": 4, "hidden": 8, "embedding": 8},
        "method": {"name": "concont", "queue": 32},
        "train": {"epochs": 2, "batch_size": 16, "device": "cpu", "checkpoint_every": 0},
    }
    concont.train(settings, out=folder / "run")
    return folder


@pytest.fixture
def run(whole, tmp_path):
    shutil.copytree(whole / "run", tmp_path / "run")
    return tmp_path / "run"


def words_of(command, run, whole):
    if command == "resume":
        (run / "summary.json").unlink(missing_ok=True)
        return ("train", "--resume", run)
    if command == "merge":
        return ("results", "merge", run, "--folder", run.parent / "sweep")
    image = [whole / "image.png"] if command == "predict" else []
    return (command, run, *image, "--device", "cpu")


def run_words(command, run, whole, capsys, caplog):
    done = run_here(capsys, *words_of(command, run, whole))
    return done, [*done.stderr.splitlines(), *caplog.messages]


def assert_one_line(done, told, names):
    """An error in a line, which names the file and the cure and gives none of torch's advice."""
    assert done.returncode in (1, 2), (done, told)
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ")
    assert any(name in line for name in names), line
    assert line.isprintable()
    assert "weights_only" not in line


@pytest.mark.parametrize(
    ("command", "name"),
    [(command, name) for command, names in READ.items() for name in (*sorted(names), SEALS)],
)
def test_damage_is_found_by_its_checksum(command, name, run, whole, capsys, caplog, monkeypatch):
    monkeypatch.chdir(run.parent)
    content = (run / name).read_bytes()
    for kind in ("one letter", "half") if command == "predict" else DAMAGES:
        caplog.clear()
        (run / name).write_bytes(DAMAGES[kind](content))
        if name == "checkpoint.previous.pt":
            (run / "checkpoint.pt").write_bytes(b"")
        done, told = run_words(command, run, whole, capsys, caplog)
        if name == "checkpoint.pt":
            assert done.returncode == 0, told
            assert any("going on from checkpoint.previous.pt" in line for line in told)
            return
        assert_one_line(done, told, [name])
        assert "put" in done.stderr or "delete" in done.stderr


@pytest.mark.parametrize(("command", "name"), PAIRS)
def test_an_older_run_without_checksums_is_read_or_refused_in_a_line(
    command, name, run, whole, capsys, caplog, monkeypatch
):
    monkeypatch.chdir(run.parent)
    (run / "checksums.json").unlink()
    if name not in READ[command]:
        assert run_words(command, run, whole, capsys, caplog)[0].returncode == 0
        return
    content, others = (run / name).read_bytes(), {"checkpoint.previous.pt", "checkpoint.pt"}
    for kind, damage in DAMAGES.items():
        if kind == "one letter":  # which nothing but a checksum finds
            continue
        caplog.clear()
        (run / name).write_bytes(damage(content))
        if name.startswith("checkpoint"):
            for other in others - {name}:
                (run / other).write_bytes(b"")
        done, told = run_words(command, run, whole, capsys, caplog)
        if done.returncode == 0:  # where what is damaged is not needed
            assert name in ("metrics.jsonl", "environment.json", "verdict.json", "candidates.npz")
            (run / "checksums.json").unlink(missing_ok=True)
        else:
            assert_one_line(done, told, [name, "it has no verdict."])


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_no_numbers_are_refused(value, run, whole, capsys, caplog):
    weights = load_file(run / "model.safetensors")
    name = next(name for name, tensor in weights.items() if tensor.is_floating_point())
    weights[name].view(-1)[0] = value
    save_file(weights, run / "model.safetensors")
    (run / "checksums.json").unlink()
    done, told = run_words("predict", run, whole, capsys, caplog)
    assert_one_line(done, told, [name])
    assert "no finite numbers" in done.stderr


def test_the_cure_of_damaged_weights_works(run, whole, capsys, caplog):
    expected = (run / "model.safetensors").read_bytes()
    (run / "model.safetensors").write_bytes(expected[:-1] + b"?")
    done, told = run_words("predict", run, whole, capsys, caplog)
    assert_one_line(done, told, ["model.safetensors"])
    for name in ("model.safetensors", "summary.json"):
        (run / name).unlink()
    done, told = run_words("resume", run, whole, capsys, caplog)
    assert done.returncode == 0, told
    assert (run / "model.safetensors").read_bytes() == expected
    assert run_words("predict", run, whole, capsys, caplog)[0].returncode == 0


@pytest.mark.parametrize("nets", [[], {"online": []}, {"online": {}}, None])
def test_a_checkpoint_with_something_else_inside_is_refused(nets, run, whole, capsys, caplog):
    saved = torch.load(run / "checkpoint.pt", weights_only=True)
    torch.save({**saved, "nets": nets}, run / "checkpoint.pt")
    (run / "checksums.json").unlink()
    done, told = run_words("resume", run, whole, capsys, caplog)
    assert_one_line(done, told, ["the checkpoint in"])


def test_classes_that_changed_places_are_found(run, whole, capsys, caplog):
    data = json.loads((run / "data.json").read_text())
    data["classes"].reverse()
    (run / "data.json").write_text(json.dumps(data, indent=2) + "\n")
    done, told = run_words("evaluate", run, whole, capsys, caplog)
    assert_one_line(done, told, ["data.json is damaged: it does not fit its checksum"])
