import json

from concont.report.origin import describe_origin, show_command
from concont.report.record import read_record
from made_runs import make_run


def test_what_a_run_was(tmp_path):
    origin = dict(describe_origin(read_record(make_run(tmp_path / "run"))))
    assert origin["Data"] == "digits"
    assert origin["Images"] == (
        "300 to learn from, 75 of them with candidate sets; 8 x 8 x 1; 3 classes"
    )
    assert origin["Recipe"] == "digits"
    assert origin["Processor"] == "A processor, 2 cores, 1 thread used"
    assert origin["Commit"] == "c0ffee, modified"
    assert origin["Command"] == "concont train --out 'a b'"


def test_no_folder_of_the_users_is_told(tmp_path):
    path = make_run(tmp_path / "run")
    text = (path / "config.yaml").read_text()
    (path / "config.yaml").write_text(text.replace("source: digits", f"source: {path}/t.csv"))
    words = " ".join(text for _, text in describe_origin(read_record(path)))
    assert "t.csv" in words
    assert str(tmp_path) not in words


def test_a_command_begins_with_its_name():
    assert show_command(["/x/concont/__main__.py", "train"]) == "concont train"
    assert show_command(["/x/bin/torchrun", "a"]) == "torchrun a"
    assert show_command([]) == ""


def test_full_paths_of_a_command_are_told_by_their_last_part():
    words = ["concont", "train", "--data", "/home/me/t.csv", "--root=/home/me/d", "--set"]
    words += ["model.start=/home/me/run", "--method", "/home/me/mine.py:Mine", "-o", "runs/a"]
    assert show_command(words) == (
        "concont train --data t.csv --root=d --set model.start=run --method mine.py:Mine -o runs/a"
    )


def test_what_is_not_known_is_left_out(tmp_path):
    path = make_run(tmp_path / "run", finished=False, rows=[])
    (path / "environment.json").write_text(json.dumps({"device": "a \x1b[31mGPU"}))
    origin = dict(describe_origin(read_record(path)))
    assert "Command" not in origin
    assert origin["Device"] == "a \\x1b[31mGPU"
