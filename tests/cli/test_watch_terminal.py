import io
import os
import pty
import re
import signal
import subprocess

import pytest
from rich.console import Console

from concont.cli.watch_terminal import draw_sparkline, make_table
from concont.report.record import read_record
from made_runs import make_rows, make_run
from processes import COMMAND, ENVIRONMENT


def show(records, width=120):
    screen = Console(file=io.StringIO(), width=width)
    screen.print(make_table(records))
    return screen.file.getvalue()


def test_a_sparkline_rises_with_its_values():
    assert draw_sparkline([1, 2, 3, 4, 5, 6, 7, 8]) == "▁▂▃▄▅▆▇█"
    assert draw_sparkline([5, 5]) == "▁▁"
    assert draw_sparkline([]) == ""
    assert len(draw_sparkline(list(range(100)))) == 16


def test_a_row_says_where_a_run_stands(tmp_path):
    begun = make_run(tmp_path / "begun", epochs=9, rows=make_rows(3), finished=False)
    waiting = make_run(tmp_path / "waiting", rows=[], finished=False)
    text = show([read_record(begun), read_record(waiting)])
    (row,) = (line for line in text.splitlines() if "begun" in line)
    for word in ("running, epoch 3 of 9", "83.33", "1.33", "75.00", "1,000", "6.0 s", "▁▆█"):
        assert word in row
    assert "waiting" in text


def test_a_name_holds_no_markup(tmp_path):
    assert "[red]x" in show([read_record(make_run(tmp_path / "[red]x"))])


@pytest.mark.slow
def test_on_a_terminal_the_table_is_drawn_in_place_and_left_cleanly(tmp_path):
    make_run(tmp_path / "runs" / "one", epochs=9, rows=make_rows(3), finished=False)
    ours, theirs = pty.openpty()
    words = [*COMMAND, "watch", str(tmp_path / "runs"), "--tui"]
    environment = {**ENVIRONMENT, "TERM": "xterm", "COLUMNS": "140"}
    process = subprocess.Popen(words, env=environment, stdout=theirs, stderr=theirs)
    os.close(theirs)
    seen = b""
    while b"running, epoch 3 of 9" not in seen:
        seen += os.read(ours, 4096)
    process.send_signal(signal.SIGINT)
    try:
        while part := os.read(ours, 4096):
            seen += part
    except OSError:  # the other end was closed
        pass
    assert process.wait(20) == 0
    text = re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b"", seen).decode()
    assert text.rstrip().endswith("stopped watching")
    assert seen.rindex(b"\x1b[?25h") > seen.rindex(b"\x1b[?25l")  # the cursor is shown again
