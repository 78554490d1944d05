"""Tables as they stand on screens of every width."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concont.cli.table import Column, find_widths, print_line, print_table
from processes import COMMAND, ENVIRONMENT

EVIL = ["[red]x", "\x1b[31mx", "[link=http://x]y[/link]", "a\nb\tc", "\\[/]"]
SHOWN = ["[red]x", "\\x1b[31mx", "[link=http://x]y[/link]", "a\\nb\\tc", "\\[/]"]

words = st.text("abc [/]é漢", min_size=1, max_size=30).map(str.strip).filter(len)
numbers = st.integers(0, 10**9).map(str)
tables = st.lists(st.booleans(), min_size=1, max_size=6).flatmap(
    lambda kinds: st.tuples(
        st.just([Column(f"the name {k}", kind) for k, kind in enumerate(kinds)]),
        st.lists(
            st.tuples(*(words if kind else numbers for kind in kinds)), min_size=1, max_size=5
        ),
    )
)


def draw(monkeypatch, capsys, width, *table, **options):
    """What a screen of so many columns shows; None: a file."""
    if width is None:
        monkeypatch.delenv("COLUMNS", raising=False)
    else:
        monkeypatch.setenv("COLUMNS", str(width))
    capsys.readouterr()
    print_table(*table, **options)
    return capsys.readouterr().out


def squeeze(text):
    return re.sub(r"[\s│┃]", "", text)


@given(table=tables, room=st.none() | st.integers(1, 150))
def test_columns_fit_into_the_room_and_no_number_is_wider_than_its_column(table, room):
    columns, rows = table
    widths = find_widths(columns, rows, room)
    least = [
        min(8, max(len("the name 0"), *map(_cells, cells)))
        if column.is_text
        else max(4, *map(len, cells))
        for column, *cells in zip(columns, *rows, strict=True)
    ]
    frame = 3 * len(columns) + 1
    if widths is None:
        assert sum(least) + frame > room
        return
    assert room is None or sum(widths) + frame <= room
    assert all(width >= needed for width, needed in zip(widths, least, strict=True))
    if room is None or sum(widths) + frame < room:  # nothing is folded that need not be
        each = zip(columns, *rows, strict=True)
        natural = [max(len(column.name), *map(_cells, cells)) for column, *cells in each]
        spare = 0 if room is None else room - sum(widths) - frame
        assert widths == natural or spare < len(columns)


def _cells(text):
    return len(text) + text.count("漢")  # which is two columns wide


@pytest.mark.parametrize("width", [12, 25, 40, 60, 100, None])
def test_every_number_is_whole_and_no_letter_is_lost(monkeypatch, capsys, width):
    columns = [Column("class", True), *map(Column, ("images", "a very long head", "accuracy"))]
    names = ["a class of a long name with words", "anotherclasswithoutanyspaces", "漢字" * 9]
    rows = [(name, 113 + k, 10**k, f"{k}7.25 %") for k, name in enumerate(names)]
    shown = draw(monkeypatch, capsys, width, "A title", columns, rows)
    assert shown.startswith("A title\n")
    found = re.findall(r"\d[\d.]*(?: %)?", shown)
    assert found == [str(value) for row in rows for value in row[1:]]
    for name in names:
        first = "".join(line.split("│")[1] for line in shown.splitlines() if "│" in line)
        assert squeeze(name) in squeeze(first or shown)
    if width is not None and "│" in shown:
        from rich.cells import cell_len

        assert max(map(cell_len, shown.splitlines())) <= width


@pytest.mark.parametrize("width", [20, 40, None])
def test_names_from_outside_are_shown_and_never_obeyed(monkeypatch, capsys, width):
    columns = [Column(name) for name in EVIL]
    columns[0] = Column(EVIL[0], True)
    shown = draw(monkeypatch, capsys, width, EVIL[2], columns, [(*EVIL[:1], 1, 2, 3, 4)])
    assert shown.splitlines()[0] == SHOWN[2]
    assert "\x1b" not in shown
    assert "\t" not in shown
    if width != 40:
        assert all(name in shown for name in SHOWN)
    monkeypatch.setenv("COLUMNS", "10")
    print_line(f"{EVIL[1]} {EVIL[3]} {EVIL[4]}")
    assert capsys.readouterr().out == f"{SHOWN[1]} {SHOWN[3]} {SHOWN[4]}\n"


def test_a_list_leaves_out_what_is_blank_and_no_rows_are_nothing(monkeypatch, capsys):
    columns = [Column("", True), Column("one"), Column("two")]
    rows = [("first", ".", 1234567), ("second", 12, "")]
    listed = draw(monkeypatch, capsys, 20, "Title", columns, rows, blank=".")
    assert listed == "Title\nfirst\ntwo: 1234567\n\nsecond\none: 12\n\n"
    assert draw(monkeypatch, capsys, 20, "Title", columns, []) == ""


@pytest.mark.slow
@pytest.mark.parametrize("width", [30, 70, 110])
def test_a_terminal_is_asked_for_its_width(width, tmp_path):
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    environment = {k: v for k, v in ENVIRONMENT.items() if k != "COLUMNS"} | {"TERM": "xterm"}
    command = [*COMMAND, "datasets", "--root", str(tmp_path)]
    process = subprocess.Popen(command, stdout=theirs, stdin=theirs, env=environment)
    os.close(theirs)
    shown = b""
    while True:
        try:
            part = os.read(ours, 10_000)
        except OSError:  # Linux's way to say that the other end is closed
            break
        if not part:
            break
        shown += part
    assert process.wait() == 0
    os.close(ours)
    lines = re.sub(r"\x1b\[[\d;]*m|\r", "", shown.decode()).splitlines()
    for number in ("1,437", "360", "50,000", "10,000", "73,257", "26,032", "60,000"):
        assert any(re.search(rf"(^|[ │:]){number}($|[ │])", line) for line in lines)
    framed = [line for line in lines if line.startswith(("│", "┃"))]
    assert bool(framed) is (width > 30)
    assert max(map(len, framed), default=0) <= width
