import json
import re

import pytest
import typer

from concont.cli import bench_ranks
from concont.cli.bench_ranks import print_ranks, start_ranks
from processes import fresh

MESSAGES = {"gradients": 44_700_000, "row": 317, "statistics": 115_000, "n_statistics": 60}
ONE = {"messages": MESSAGES, "compute_ms": 7.4, "step_ms": 9.85, "images_per_s": 207_918.4}
ONE |= {"rows_of_a_rank": 256, "message_ms": {"gradients": 1.45, "rows": 1.0}, "efficiency": 0.75}
FIGURES = {
    "ranks": 8,
    "link": {"gb_per_s": 200.0, "latency_us": 10.0},
    "calculated": {"more_rows": ONE, "same_rows": {**ONE, "rows_of_a_rank": 32}},
}


def test_a_calculation_says_that_it_is_one_and_what_it_assumes(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "120")
    print_ranks(FIGURES)
    shown = " ".join(capsys.readouterr().out.split())
    assert "8 ranks, a calculation" in shown
    assert re.search(r"256 \S 7.40 \S 2.45 \S 9.85 \S 207,918 \S 75 %", shown)
    assert "44.70 MB of gradients, 317 bytes a row and 115.0 kB" in shown
    assert "60 messages" in shown
    assert "200 GB/s a rank, 10 us a message" in shown


def test_ranks_are_started_once(monkeypatch):
    monkeypatch.setattr("concont.bench.ranks.run_on_ranks", lambda ranks, words: 3)
    monkeypatch.setattr(bench_ranks, "is_started_as_rank", lambda: True)
    start_ranks(2)
    monkeypatch.setattr(bench_ranks, "is_started_as_rank", lambda: False)
    start_ranks(None)
    with pytest.raises(typer.Exit) as ended:
        start_ranks(2)
    assert ended.value.exit_code == 3


@pytest.mark.slow
@pytest.mark.long
def test_the_time_for_an_image_is_measured_on_two_real_ranks():
    small = ("--set", "model.name=small", "--set", "model.width=4", "--device", "cpu")
    done = fresh("bench", "--scaling", "--ranks", "2", "--steps", "2", "--json", *small)
    assert done.returncode == 0, done.stderr
    (line,) = done.stdout.splitlines()
    found = json.loads(line)
    assert found["ranks"] == 2
    assert [row["images"] for row in found["rows"][:3]] == [10_000, 100_000, 1_000_000]
    assert [row["on_disk"] for row in found["rows"][3:]] == [True, False, True, False]
